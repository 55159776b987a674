import type { IncomingMessage, ServerResponse } from 'node:http'
import { asksForWebSocket, findHandshakeFault, UPGRADE_REQUIRED } from '../upgrade/handshake.js'
import { answerWith, rejectionOf } from '../upgrade/rejection.js'
import { headOf } from '../upgrade/request-head.js'

/** Answers a request that is no upgrade with what is wrong with it, and ends its connection. */
export function answerRequest(request: IncomingMessage, response: ServerResponse): void {
  const head = headOf(request)
  const fault = asksForWebSocket(head) ? findHandshakeFault(head) : undefined
  answerWith(response, rejectionOf('E_HANDSHAKE_INVALID', fault ?? UPGRADE_REQUIRED))
}
