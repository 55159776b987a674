import { createRequire } from 'node:module'
import path from 'node:path'
import { run } from './run.js'

/** What event streams need besides the path of WebSockets: `webmq-client/sse`. */
const STREAM_PATHS = ['/sse', '/health', '/api/publish']
/** The variable that says what webmq-server logs. */
const LOUD = 'WEBMQ_LOG_LEVEL'
/** The dev server then starts without it. */
const START_LIMIT_MS = 20_000

/** Options of {@link webmq}. */
export interface WebMQPluginOptions {
  /** Path of WebSockets, of this dev server and of the target; default `/ws`. */
  readonly path?: string
  /** Where `webmq-server` is, or is started; default `http://127.0.0.1:8080`. */
  readonly target?: string
  /** Passes on what `webmq-client/sse` asks for, too: `/sse`, `/health` and `/api/publish`. Default `false`. */
  readonly eventStreams?: boolean
  /**
   * Starts the `webmq-server` that the project has installed, and ends it with the dev server. `true`, or its flags:
   * `['--history', 'chat.#=100']`. Default `false`.
   */
  readonly start?: boolean | readonly string[]
}

const NAMES = ['path', 'target', 'eventStreams', 'start'] satisfies (keyof WebMQPluginOptions)[] as readonly string[]

/** What Vite 5 and later call. Their own types are not named here, so that this entry needs none of them. */
export interface WebMQPlugin {
  readonly name: 'webmq'
  readonly apply: 'serve'
  readonly config: () => { server: { proxy: Record<string, { target: string; ws?: true }> } }
  readonly configResolved: (config: { readonly root: string; readonly logger: Logger }) => void
  readonly configureServer: (server: DevServer) => Promise<void>
}

/** Of Vite's dev server. As a middleware of another server it has none of HTTP; the program then ends with the process. */
interface DevServer {
  readonly httpServer: { once(event: 'close', handler: () => void): unknown } | null
}

/** Where Vite writes what a developer should see. */
interface Logger {
  error(text: string, options?: { readonly error?: unknown }): void
}

/** Errors of a connection whose tab was closed. */
const CLOSED_TAB = ['ECONNRESET', 'EPIPE']
const quiet = new WeakSet<Logger>()

/**
 * A plugin of Vite whose dev server passes WebSockets at `/ws` on to `webmq-server`, so that pages use
 * `setup({ url: '/ws' })` as in production. `vite preview` passes them on, too. A build is not changed.
 * @throws {Error} for an unknown option; when the dev server starts: with `start`, if the project has no `webmq-server`.
 */
export function webmq(options: WebMQPluginOptions = {}): WebMQPlugin {
  for (const name of Object.keys(options)) {
    if (!NAMES.includes(name)) throw new Error(`webmq: ${name}: unknown option, there are ${NAMES.join(', ')}`)
  }
  const { path: socketPath = '/ws', target = 'http://127.0.0.1:8080', eventStreams = false, start = false } = options
  let root = '.'
  let logger: Logger = console
  return {
    name: 'webmq',
    apply: 'serve',
    config: () => ({
      server: {
        proxy: {
          [exactly(socketPath)]: { target, ws: true },
          ...(eventStreams && Object.fromEntries(STREAM_PATHS.map((name) => [exactly(name), { target }]))),
        },
      },
    }),
    configResolved(config) {
      ;({ root, logger } = config)
      beQuietAboutTabs(logger)
    },
    async configureServer({ httpServer }) {
      if (start === false) return
      const { hostname, port } = new URL(target)
      const flags = start === true ? [] : start
      // What it says at its start would hide the address of the page.
      const isLoud = LOUD in process.env || flags.some((flag) => /^--(log-level|config)\b/.test(flag))
      const level = isLoud ? [] : ['--log-level', 'warn']
      const address = ['--host', hostname, '--port', port || '80', '--path', socketPath]
      const args = [programOf(root), ...address, ...level, ...flags]
      const server = run(args, (code) => logger.error(`webmq-server has ended with ${code}; is port ${port} in use?`))
      httpServer?.once('close', server.release)
      if (await server.isSilent(target, START_LIMIT_MS))
        logger.error(`webmq-server does not answer at ${target}; do its flags name another address?`)
    },
  }
}

/** Vite's rule for this path alone: a plain text would match `/wsfoo`, too. */
function exactly(path: string): string {
  return `^${path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?:\\?|$)`
}

/** Vite prints an error with its stack whenever a tab with a WebSocket closes. */
function beQuietAboutTabs(logger: Logger): void {
  if (quiet.has(logger)) return
  quiet.add(logger)
  const print = logger.error.bind(logger)
  logger.error = (text, options) => {
    const { code = '' } = (options?.error ?? {}) as { readonly code?: string }
    if (!text.includes('ws proxy') || !CLOSED_TAB.includes(code)) print(text, options)
  }
}

/** The program of the project's own `webmq-server`. */
function programOf(root: string): string {
  const require = createRequire(path.resolve(root, 'package.json'))
  try {
    const manifest = require.resolve('webmq-server/package.json')
    return path.join(path.dirname(manifest), require(manifest).bin['webmq-server'])
  } catch (cause) {
    throw new Error(`webmq({ start }) needs webmq-server in ${root}: npm install --save-dev webmq-server`, { cause })
  }
}
