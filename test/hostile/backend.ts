import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** Payloads that meet the bugs of {@link startBackend}. */
export const FAILS = 'a payload that fails'
export const HANGS = 'a payload that hangs'

/** The backend of a webhook: it allows everything, fails at one payload, and never answers to another one. */
export async function startBackend(): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer(async (request, response) => {
    const body = (await buffer(request)).toString()
    if (body.includes(HANGS)) return
    response.writeHead(body.includes(FAILS) ? 500 : 204).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await once(server.close(), 'close')
    },
  }
}
