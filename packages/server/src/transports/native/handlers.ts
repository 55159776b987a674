import { WebMQError } from 'webmq-client/protocol'
import type { NativeEventHandlers } from './events.js'
import type { NativeHttp } from './http.js'
import type { NativeOpenings } from './openings.js'
import type { NativeSinkCalls } from './sink-calls.js'

/** Passes the events of the engine on. */
export function handlersOf(
  calls: NativeSinkCalls,
  openings: NativeOpenings,
  http: NativeHttp | undefined,
  threads: Pick<NativeEventHandlers, 'quiet' | 'ended'>,
): NativeEventHandlers {
  return {
    upgrade: (request) => openings.upgrade(request),
    messageRun: (connection, run) => calls.messageRun(connection, run),
    drained: (connection) => calls.drained(connection),
    closed: (connection, code, reason) => openings.closed(connection, code, reason),
    http: (token, peer, read) => http?.serve(token, peer, read),
    failed: (detail) => calls.failed(new WebMQError('E_TRANSPORT_FAILED', { detail })),
    ...threads,
  }
}
