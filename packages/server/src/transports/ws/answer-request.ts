import type { IncomingMessage, ServerResponse } from 'node:http'
import { asksForWebSocket, findHandshakeFault, type HandshakeFault } from '../upgrade/handshake.js'
import { rejectionOf } from '../upgrade/rejection.js'
import { headOf } from '../upgrade/request-head.js'

/** RFC 9110 §15.5.22 */
const UPGRADE_REQUIRED: HandshakeFault = {
  status: 426,
  detail: 'only WebSocket is spoken here',
  headers: { upgrade: 'websocket' },
}

/** Answers a request that is no upgrade with what is wrong with it, and ends its connection. */
export function answerRequest(request: IncomingMessage, response: ServerResponse): void {
  const head = headOf(request)
  const fault = asksForWebSocket(head) ? findHandshakeFault(head) : undefined
  const { status, headers, body } = rejectionOf('E_HANDSHAKE_INVALID', fault ?? UPGRADE_REQUIRED)
  response.shouldKeepAlive = false
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
}
