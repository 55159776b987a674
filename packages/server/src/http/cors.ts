import type { IncomingMessage, ServerResponse } from 'node:http'

/** Time for which a browser keeps the answer to a preflight request. */
const MAX_AGE_S = 600

/** Lets the page that asked read the answer. Call it only for an allowed origin. */
export function allowOrigin(request: IncomingMessage, response: ServerResponse): void {
  const { origin } = request.headers
  response.setHeader('vary', 'origin')
  if (origin === undefined) return
  response.setHeader('access-control-allow-origin', origin)
  response.setHeader('access-control-expose-headers', 'retry-after')
}

/** Answers the question of a browser whether a page may send a request with these methods. Call it only for an allowed origin. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse, methods: readonly string[]): void {
  allowOrigin(request, response)
  response.writeHead(204, {
    allow: methods.join(', '),
    'access-control-allow-methods': methods.join(', '),
    'access-control-allow-headers': 'authorization, content-type, idempotency-key, last-event-id',
    'access-control-max-age': `${MAX_AGE_S}`,
  })
  response.end()
}
