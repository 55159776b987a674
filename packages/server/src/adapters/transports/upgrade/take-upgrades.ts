import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'

/** What a listener of this module takes; other listeners are the embedder's. */
const wanted = new WeakMap<object, (request: IncomingMessage) => boolean>()

export type TakeUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void

/**
 * Takes the WebSocket upgrades of a Node `http` or `https` server; returns a function that stops it.
 * @param path Upgrades of other paths are left to other listeners; absent: all are taken.
 */
export function takeUpgrades(server: Server, path: string | undefined, take: TakeUpgrade): () => void {
  const isWanted = ({ headers, url = '' }: IncomingMessage) =>
    /\bwebsocket\b/i.test(headers.upgrade ?? '') && (path === undefined || url.split('?', 1)[0] === path)
  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // Another listener has taken or answered it.
    if (socket.destroyed || socket.writableEnded) return
    if (!isWanted(request) && isOfOthers(server, request)) return
    if (server.listenerCount('upgrade') === 1) return take(request, socket, head)
    const restore = hide(socket)
    // Before the event loop reads more.
    process.nextTick(() => {
      restore()
      take(request, socket, head)
    })
  }
  wanted.set(upgrade, isWanted)
  // First: endpoints of `ws` answer every path that is not theirs with 400.
  server.prependListener('upgrade', upgrade)
  return () => server.off('upgrade', upgrade)
}

/**
 * Whether another listener may take an upgrade. It stays open then, as Node leaves it: other endpoints, such as the
 * hot reload of Vite or Next, may answer later.
 */
function isOfOthers(server: Server, request: IncomingMessage): boolean {
  return server.listeners('upgrade').some((listener) => wanted.get(listener)?.(request) ?? true)
}

/**
 * Makes a socket look destroyed, until the returned function is called. Node calls every listener of an upgrade, and many
 * endpoints answer each path that is not theirs on a socket that looks usable.
 */
function hide(socket: Duplex): () => void {
  const ignore = () => socket
  const shown = { destroyed: true, readable: false, writable: false, write: ignore, end: ignore, destroy: ignore }
  for (const [name, value] of Object.entries(shown)) Object.defineProperty(socket, name, { value, configurable: true })
  return () => {
    for (const name of Object.keys(shown)) Reflect.deleteProperty(socket, name)
  }
}
