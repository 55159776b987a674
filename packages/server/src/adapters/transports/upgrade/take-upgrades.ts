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
  const isWanted = (request: IncomingMessage) =>
    asksForUpgrade(request) && (path === undefined || (request.url ?? '').split('?', 1)[0] === path)
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
 * Takes the upgrades of connections that a transport gave to `httpServer`, because their first request asked for something else: a
 * proxy sends the requests of many clients through one connection. Once somebody listens, Node gives every `Upgrade` here. Other
 * protocols, as `h2c`, are mere offers (RFC 9110 §7.8): their requests are served as if they had none, body and all.
 */
export function takeLaterUpgrades(server: Server, take: TakeUpgrade): void {
  // Node from 24.9 on asks; what comes to the listener with another protocol is of an older one.
  Object.assign(server, { shouldUpgradeCallback: asksForUpgrade })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (socket.destroyed) return
    if (asksForUpgrade(request)) return take(request, socket, head)
    server.emit('connection', socket)
    if (!socket.destroyed) socket.unshift(Buffer.concat([requestHead(request, 'upgrade'), head]))
  })
}

/**
 * The request as the client sent it, up to the empty line. Node has checked that no header contains a line end.
 * @param without A header that is left out; in lower case.
 */
export function requestHead({ method, url, httpVersion, rawHeaders }: IncomingMessage, without?: string): Buffer {
  let head = `${method} ${url} HTTP/${httpVersion}\r\n`
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.toLowerCase() !== without) head += `${name}: ${rawHeaders[index + 1]}\r\n`
  }
  return Buffer.from(`${head}\r\n`, 'latin1')
}

function asksForUpgrade({ headers }: IncomingMessage): boolean {
  return /\bwebsocket\b/i.test(headers.upgrade ?? '')
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
