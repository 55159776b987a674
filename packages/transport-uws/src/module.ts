import { WebMQError } from 'webmq-client/protocol'

/** User data of an accepted WebSocket; uWebSockets.js copies the fields to its own object. */
export interface UwsUserData<Connection> {
  readonly connection: Connection
}

/** The part of uWebSockets.js's `WebSocket` that we use. Any call after its close event throws. */
export interface UwsWebSocket<Connection> {
  /** Copies the message. The result is unreliable while corked; use `getBufferedAmount`. */
  send(message: Uint8Array, isBinary: boolean, compress?: boolean): number
  /** Appends a close frame to the queue, and calls the close handler before it returns. */
  end(code: number, reason: string): void
  ping(): number
  cork(run: () => void): unknown
  subscribe(topic: string): boolean
  unsubscribe(topic: string): boolean
  /** To all subscribers but this one. */
  publish(topic: string, message: Uint8Array, isBinary: boolean, compress?: boolean): boolean
  getBufferedAmount(): number
  getUserData(): UwsUserData<Connection>
}

/** The part of `HttpResponse` that we use. Any call after its end or abort throws. */
export interface UwsResponse {
  writeStatus(status: string): UwsResponse
  writeHeader(name: string, value: string): UwsResponse
  write(chunk: Uint8Array): boolean
  end(body?: string, closeConnection?: boolean): UwsResponse
  endWithoutBody(reportedBytes?: number, closeConnection?: boolean): UwsResponse
  /** `[all data was accepted, the response is complete]`. */
  tryEnd(chunk: Uint8Array, totalBytes: number): [boolean, boolean]
  getWriteOffset(): number
  onWritable(handler: (offset: number) => boolean): UwsResponse
  onAborted(handler: () => void): UwsResponse
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): UwsResponse
  pause(): void
  resume(): void
  cork(run: () => void): UwsResponse
  close(): UwsResponse
  upgrade(userData: object, key: string, subprotocol: string, extensions: string, context: object): void
  /** 4 or 16 bytes. */
  getRemoteAddress(): ArrayBuffer
  /** Later releases only. */
  getRemotePort?(): number
}

/** The part of `HttpRequest` that we use; valid until the handler returns. */
export interface UwsRequest {
  getUrl(): string
  getQuery(): string | undefined
  getMethod(): string
  /** Later releases only. */
  getCaseSensitiveMethod?(): string
  forEachHeader(visit: (lowerCaseName: string, value: string) => void): void
  setYield(isYielded: boolean): unknown
}

/** The part of `WebSocketBehavior` that we use. */
export interface UwsBehavior<Connection> {
  readonly maxPayloadLength: number
  readonly maxBackpressure: number
  readonly idleTimeout: number
  readonly maxLifetime: number
  readonly compression: number
  readonly sendPingsAutomatically: boolean
  upgrade(response: UwsResponse, request: UwsRequest, context: object): void
  open(socket: UwsWebSocket<Connection>): void
  message(socket: UwsWebSocket<Connection>, message: ArrayBuffer, isBinary: boolean): void
  ping(socket: UwsWebSocket<Connection>): void
  pong(socket: UwsWebSocket<Connection>): void
  drain(socket: UwsWebSocket<Connection>): void
  close(socket: UwsWebSocket<Connection>, code: number, reason: ArrayBuffer): void
}

/** A listening socket: a raw pointer that is only passed back to the module. */
export type UwsListenSocket = object

/** PEM files; uWebSockets.js takes no contents. */
export interface UwsCertificateFiles {
  readonly key_file_name: string
  readonly cert_file_name: string
}

/** The part of `TemplatedApp` that we use. */
export interface UwsApp {
  ws<Connection>(pattern: string, behavior: UwsBehavior<Connection>): UwsApp
  /** Copies the message; it is written at the end of the turn, with all others of the turn. */
  publish(topic: string, message: Uint8Array, isBinary: boolean, compress?: boolean): boolean
  any(pattern: string, handler: (response: UwsResponse, request: UwsRequest) => void): UwsApp
  /** The certificate of a host name (SNI) or wildcard. The first of a name stays. */
  addServerName(name: string, files: UwsCertificateFiles): UwsApp
  /** Routes that follow are for this server name, which has been added. */
  domain(name: string): UwsApp
  listen(host: string, port: number, options: number, done: (socket: UwsListenSocket | false) => void): UwsApp
  listen_unix(done: (socket: UwsListenSocket | false) => void, path: string): UwsApp
}

/** The part of uWebSockets.js that we use, with the names of its own releases. */
export interface UwsModule {
  App(): UwsApp
  SSLApp(files: UwsCertificateFiles): UwsApp
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number
  readonly SHARED_COMPRESSOR: number
  readonly SHARED_DECOMPRESSOR: number
  us_listen_socket_close(socket: UwsListenSocket): void
  us_socket_local_port(socket: UwsListenSocket): number
}

/** The two functions that builds from the npm registry name differently. */
interface RenamedFunctions {
  readonly closeSocket?: UwsModule['us_listen_socket_close']
  readonly getSocketPort?: UwsModule['us_socket_local_port']
}

/**
 * Loads uWebSockets.js, an optional peer that is not on the npm registry.
 * @param importModule Replaceable for tests.
 * @throws {WebMQError} `E_TRANSPORT_MISSING`, with the command that installs a release for this version of Node.
 */
export async function loadUws(importModule: () => Promise<unknown> = importUws): Promise<UwsModule> {
  let namespace: unknown
  try {
    namespace = await importModule()
  } catch (cause) {
    throw missing(isNotFound(cause) ? 'uWebSockets.js is not installed' : 'uWebSockets.js does not load', cause)
  }
  const module = exportsOf(namespace)
  const closeSocket = module.us_listen_socket_close ?? module.closeSocket
  const getSocketPort = module.us_socket_local_port ?? module.getSocketPort
  if (!module.App || !module.SSLApp || !closeSocket || !getSocketPort) {
    throw missing('the installed uWebSockets.js is not a supported build')
  }
  return {
    App: module.App,
    SSLApp: module.SSLApp,
    LIBUS_LISTEN_EXCLUSIVE_PORT: module.LIBUS_LISTEN_EXCLUSIVE_PORT ?? 1,
    SHARED_COMPRESSOR: module.SHARED_COMPRESSOR ?? 1,
    // Releases without it use a shared decompressor too.
    SHARED_DECOMPRESSOR: module.SHARED_DECOMPRESSOR ?? 0,
    us_listen_socket_close: closeSocket,
    us_socket_local_port: getSocketPort,
  }
}

function importUws(): Promise<unknown> {
  return import('uWebSockets.js')
}

/** Prefers the default export: the CommonJS module itself, with all its names. */
function exportsOf(namespace: unknown): Partial<UwsModule & RenamedFunctions> {
  if (typeof namespace !== 'object' || namespace === null) return {}
  return 'default' in namespace && typeof namespace.default === 'object' ? { ...namespace.default } : { ...namespace }
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
}

function missing(detail: string, cause?: unknown): WebMQError {
  const nodeMajor = Number.parseInt(process.versions.node, 10)
  const install = `npm install uNetworking/uWebSockets.js#${releaseFor(nodeMajor)}`
  const advice = `${detail}; install it with \`${install}\`, or choose the native transport`
  return new WebMQError('E_TRANSPORT_MISSING', cause === undefined ? { detail: advice } : { detail: advice, cause })
}

/** Each release supports about three versions of Node: v20.52.0 supports 20, 22 and 24, v20.67.0 supports 22, 24 and 26. */
function releaseFor(nodeMajor: number): string {
  return nodeMajor <= 24 ? 'v20.52.0' : 'v20.67.0'
}
