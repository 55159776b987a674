import type { Frame } from './frame.js'

/** RFC 6455 §7.4.1: no close frame was received. The client of the tab reconnects, to the hub of that moment. */
export const ABNORMAL = 1006

/** As when a page is unloaded: presence lingers, for the next page may enter again [P-14.6]. */
export const GONE = 3000

/** What a tab and the hub say to each other. */
export type PortMessage =
  /** Hub to tab: somebody is there. */
  | readonly ['open']
  /** Tab to hub: connect me. `lock` is a Web Lock that the tab holds for as long as it lives. */
  | readonly ['hello', url: string, auth: string | undefined, lock: string]
  | readonly ['frame', frame: Frame]
  /** Bytes of the frames that the receiver has handled. */
  | readonly ['taken', bytes: number]
  | readonly ['ping']
  | readonly ['pong']
  | readonly ['close', code: number, reason: string]

/** One end of a channel between a tab and the hub. Messages come in order; nothing tells that the other end is gone. */
export interface Port {
  onmessage: ((message: PortMessage) => void) | undefined
  post(message: PortMessage): void
  close(): void
}

/** A port over a `MessagePort` of a worker, or over a `BroadcastChannel` that two pages share. */
export function portOf(channel: MessagePort | BroadcastChannel): Port {
  const port: Port = {
    onmessage: undefined,
    post: (message) => channel.postMessage(message),
    close: () => {
      channel.onmessage = null
      channel.close()
    },
  }
  channel.onmessage = ({ data }: MessageEvent<PortMessage>) => port.onmessage?.(data)
  return port
}

/**
 * Two ends within one page. Messages arrive in a later microtask, so that nothing is called within a call. As with other
 * ports, messages arrive although their sender has closed its end.
 */
export function portPair(): readonly [Port, Port] {
  const end = (): Port => ({ onmessage: undefined, post: () => undefined, close: () => undefined })
  const ends = [end(), end()] as const
  const join = (one: Port, other: Port) => {
    let isOpen = true
    one.close = () => {
      isOpen = false
    }
    other.post = (message) => queueMicrotask(() => isOpen && one.onmessage?.(message))
  }
  join(ends[0], ends[1])
  join(ends[1], ends[0])
  return ends
}
