import { WebMQError } from 'webmq-client/protocol'
import type { WebMQServer } from '../api.js'
import { createLogger } from '../logger.js'
import { type ResolvedOptions, resolveOptions, type ServerOptions, warningsOf } from '../options/options.js'
import { unknownVariables } from './environment.js'
import { EXIT } from './exit-codes.js'
import { describeStart } from './start-message.js'
import { StopSignals } from './stop-signals.js'
import type { Terminal } from './terminal.js'

/** Beyond the time to drain and to close: a stop that hangs must not keep the process from ending. */
const STOP_GRACE_MS = 5000

/**
 * Runs a server until a signal stops it. The first signal drains: no new connections, the others closed over
 * `drainTimeoutMs` with a code that makes clients reconnect elsewhere. A second one ends the process at once.
 *
 * @returns The exit code.
 * @throws {WebMQError} when the server cannot start.
 */
export async function serve(options: ServerOptions, terminal: Terminal): Promise<number> {
  const resolved = resolveOptions(options)
  const logger = createLogger({ level: resolved.logLevel, format: resolved.logFormat })
  // A bug: what state things are in is not known, so the process ends, and whoever supervises it starts another.
  process.on('uncaughtException', (err, origin) => {
    logger.fatal({ err, origin }, 'the server met a bug and ends')
    process.exit(EXIT.FAILED)
  })
  for (const warning of [...unknownVariables(terminal.env), ...warningsOf(resolved)]) logger.warn(warning)

  // Loaded here, so that the other commands start without the transports.
  const { createServer } = await import('../create-server.js')
  const signals = new StopSignals()
  const server = createServer({ ...options, logger })
  const starting = server.start()
  // Whoever waits for a broker that does not come may have had enough.
  const isEarly = await Promise.race([signals.first.then(() => true), starting.then(ignore, ignore)])
  if (isEarly === true) return await stopEarly(server, starting)
  const address = await starting.catch((error: unknown) => {
    throw withHint(error, resolved)
  })
  terminal.stdout.write(describeStart(address.url, resolved, terminal))

  const signal = await signals.first
  logger.info({ signal, drainTimeoutMs: resolved.drainTimeoutMs }, 'stopping; a second signal stops at once')
  const deadlineMs = resolved.drainTimeoutMs + resolved.closeTimeoutMs + STOP_GRACE_MS
  const deadline = setTimeout(() => {
    logger.fatal({ deadlineMs }, 'the server did not stop in time')
    process.exit(EXIT.FAILED)
  }, deadlineMs)
  await server.stop({ drainMs: resolved.drainTimeoutMs })
  clearTimeout(deadline)
  return EXIT.OK
}

/** The outcome does not matter here. */
const ignore = (): undefined => undefined

/** Stops a server that has not begun to serve; that it did not start is then what was asked for. */
async function stopEarly(server: WebMQServer, starting: Promise<unknown>): Promise<number> {
  await server.stop({ drainMs: 0 })
  await starting.catch(ignore)
  return EXIT.OK
}

/** Says what to do about an error of the start that everyone meets. */
function withHint(error: unknown, { host, port }: ResolvedOptions): unknown {
  if (!(error instanceof WebMQError) || error.code !== 'E_ADDRESS_IN_USE') return error
  const other = port < 65_535 ? port + 1 : port - 1
  return new WebMQError('E_ADDRESS_IN_USE', {
    detail: `something else listens on port ${port} of ${host}; stop it, or take another port: --port ${other}, or --port 0 for any free one`,
    cause: error,
  })
}
