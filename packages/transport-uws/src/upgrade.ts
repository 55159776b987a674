import type { AcceptOptions } from 'webmq-server/ports'
import { acceptedExtensions, type RequestHead, valuesOf } from 'webmq-server/transports'
import type { UwsConnection } from './connection.js'
import type { UwsResponse, UwsUserData } from './module.js'

/** A request for a WebSocket, and what to answer it with. */
export interface UwsUpgrade {
  readonly head: RequestHead
  readonly response: UwsResponse
  readonly context: object
}

/**
 * Answers with 101. uWebSockets.js calls its `open` handler before this returns.
 * @param hasCompression Whether permessage-deflate is negotiated.
 */
export function answerUpgrade(
  { head, response, context }: UwsUpgrade,
  userData: UwsUserData<UwsConnection>,
  { subprotocol = '', headers = {} }: AcceptOptions,
  hasCompression: boolean,
): void {
  const [key = ''] = valuesOf(head, 'sec-websocket-key')
  const extensions = hasCompression ? acceptedExtensions(head, { namesServerWindow: false }) : ''
  response.cork(() => {
    // The status must come first; otherwise the first header would make this a 200.
    response.writeStatus('101 Switching Protocols')
    for (const [name, value] of Object.entries(headers)) response.writeHeader(name, value)
    response.upgrade(userData, key, subprotocol, extensions, context)
  })
}
