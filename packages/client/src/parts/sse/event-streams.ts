import { checks } from '../../core/checks.js'
import type { WebSocketConstructor, WebSocketLike } from '../../core/client-options.js'
import { socketClassOf } from '../../core/options.js'
import { SseSocket } from './socket.js'

/** Options of {@link eventStreams}. */
export interface EventStreamsOptions {
  /** What is tried first; default: the runtime's own. `null`: event streams alone. */
  readonly WebSocket?: WebSocketConstructor | null | undefined
}

/** Refused WebSockets in a row after which event streams are tried. */
const MAX_REFUSALS = 2

/**
 * Makes the option `WebSocket` for a client that listens by event streams and publishes by `POST` where WebSockets fail
 * but HTTP does not: `setup({ url, WebSocket: eventStreams() })`. Presence, history, requests and `echo: false` are then
 * refused with `E_UNSUPPORTED`.
 */
export function eventStreams(options: EventStreamsOptions = {}): WebSocketConstructor {
  checks.part?.('eventStreams', options)
  const { WebSocket } = options
  /** WebSockets that were refused since the last one was open. */
  let refusalCount = 0
  // A class whose objects are of another one: it depends on what the network lets through.
  return function open(url: string, protocols: string[]): WebSocketLike {
    const isStream = WebSocket === null || refusalCount >= MAX_REFUSALS
    const socket = isStream ? new SseSocket(url) : new (socketClassOf({ WebSocket }))(url, protocols)
    const countOnceOpen = isStream ? refusalCount : 0
    // Counts as refused until it opens. A server that is down refuses both kinds; then it is the turn of WebSockets again.
    refusalCount = isStream ? 0 : refusalCount + 1
    const notingOpen = (handler: WebSocketLike['onopen']) => (event: never) => {
      refusalCount = countOnceOpen
      handler?.(event)
    }
    return new Proxy(socket, {
      set: (target, name, value) => Reflect.set(target, name, name === 'onopen' ? notingOpen(value) : value),
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  } as unknown as WebSocketConstructor
}
