import { createHmac } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { createTestServer, type TestServer } from '../../packages/client/src/dev/testing/index.js'
import type { StartServer } from '../../packages/conformance/src/client/case-server.js'

/** A node of WebMQ has the same. */
const PAGE_MESSAGES = 500
/** How an error begins for a case that wants what the test server does not have. */
export const MISSING_OPTION = 'the test server has no'
/** Tokens that last longer do not expire within a case. */
const SHORT_MS = 60_000

type Options = Parameters<StartServer>[0]

/**
 * The server of `webmq-client/testing` behind a real port, for clients in any language. What it leaves to whoever tests is done
 * here: time, which tells that tokens expire, and the end of a process, with which its members, log and streams are gone.
 */
export function testServers(): StartServer {
  let server: TestServer | undefined
  return async (options, secret) => {
    if (server === undefined) server = newServer(options, secret)
    else {
      server.restartHistory()
      server.presence.lapse()
    }
    return open(server)
  }
}

function newServer(options: Options = {}, secret?: string) {
  const { history = [], historyMaxMessages, retain = [], maxPayloadBytes, ...others } = options
  if (Object.keys(others).length > 0) throw new Error(`${MISSING_OPTION} ${Object.keys(others).join(', ')}`)
  const rules = texts(history).map((rule) => /^(?<pattern>.+)=(?<count>\d+),/.exec(rule)?.groups ?? {})
  const server: TestServer = createTestServer({
    ...(rules.length > 0 && { history: rules.map(({ pattern = '' }) => pattern) }),
    historyMaxMessages: Math.min(Number(historyMaxMessages ?? Infinity), ...rules.map(({ count }) => Number(count))),
    retain: texts(retain),
    replayPageMessages: PAGE_MESSAGES,
    ...(maxPayloadBytes !== undefined && { limits: { maxPayloadBytes: Number(maxPayloadBytes) } }),
    ...(secret !== undefined && {
      verifyToken: (token) => identityOf(token, secret, (inMs) => server.expireTokens(inMs)),
    }),
  })
  return server
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : []
}

/** @param tellExpiry Called when a fifth of the token's time is left [P-5.6]. */
function identityOf(token: string, secret: string, tellExpiry: (inMs: number) => void) {
  const [head = '', claims = '', signature = ''] = token.split('.')
  if (createHmac('sha256', secret).update(`${head}.${claims}`).digest('base64url') !== signature) return undefined
  const { sub, exp, webmq } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  const leftMs = exp * 1_000 - Date.now()
  if (leftMs < SHORT_MS) setTimeout(() => tellExpiry(Math.round(leftMs / 5)), (leftMs * 4) / 5)
  return { userId: sub, grants: webmq.grants }
}

async function open(server: TestServer): ReturnType<StartServer> {
  const sockets = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  sockets.on('connection', (socket, { headers }) => join(socket, server, headers['sec-websocket-protocol']))
  await new Promise((resolve, reject) => sockets.once('listening', resolve).once('error', reject))
  return {
    port: (sockets.address() as AddressInfo).port,
    publish: (key, payload, { ephemeral }) =>
      ephemeral ? server.publishUnlogged(key, payload) : server.publish(key, payload),
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      await new Promise((resolve) => sockets.close(resolve))
    },
  }
}

/** Passes frames between a connection and a socket in memory, and the end of each to the other. */
function join(socket: WebSocket, server: TestServer, protocols = ''): void {
  const inner = new server.WebSocket(server.url, protocols.split(/, ?/))
  inner.onmessage = ({ data }: { data: string | ArrayBuffer }) => socket.send(data)
  inner.onclose = ({ code, reason }: { code: number; reason: string }) =>
    code === 1006 ? socket.terminate() : socket.close(code, reason)
  // The client may break it at any time.
  socket.on('error', () => socket.terminate())
  socket.on('close', (code) => inner.close(code))
  socket.on('message', (data: Buffer, isBinary) => inner.send((isBinary ? new Uint8Array(data) : `${data}`) as never))
}
