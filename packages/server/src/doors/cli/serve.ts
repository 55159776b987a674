import { constants, writeFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { WebMQError } from 'webmq-client/protocol'
import { noLines, standardWriter } from '../../kernel/base/line-writer.js'
import { createLogger, type Logger, linesOf } from '../../kernel/base/logger.js'
import { within } from '../../kernel/base/within.js'
import { STOP_GRACE_MS } from '../../kernel/node/stop-list.js'
import type { TransportAddress } from '../../kernel/ports/transport.js'
import { unixPathOf } from '../../kernel/ports/unix-socket.js'
import type { WebMQServer } from '../in-process/webmq-server.js'
import { warningsOf } from '../options/rules.js'
import type { ResolvedOptions, ServerOptions } from '../options/server-options.js'
import { EXIT } from './exit-codes.js'
import { type FileRecorder, unknownVariables } from './option-sources.js'
import { Reload } from './reload.js'
import { sendTraces } from './send-traces.js'
import { describeStart } from './start-message.js'
import { StopSignals } from './stop-signals.js'
import type { Terminal } from './terminal.js'

/** What a pipe, a disk or a network volume of the operator may take, at the start and at the end. */
const OUTPUT_LIMIT_MS = 1_000
const { O_CREAT, O_NOFOLLOW, O_NONBLOCK, O_TRUNC, O_WRONLY } = constants
/** Without waiting for the reader of a pipe. Where others may write too, such as /tmp, a link may lead to any file. */
const PID_FILE_FLAGS = O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOFOLLOW

/**
 * Runs a server until a signal stops it. The first signal drains: the server refuses new connections, and closes the
 * others within `drainTimeoutMs` with a code that makes clients reconnect elsewhere. A second signal ends the process at
 * once. SIGHUP reads all options again and reopens the audit log. A changed file with a secret is read again by itself.
 *
 * @param read Reads the options, as {@link Reload} wants it.
 * @param pidFile Holds the number of the process while the server listens.
 * @param exposed Tells of secrets that others on this machine can see.
 * @returns The exit code.
 * @throws {WebMQError} The server cannot start.
 */
export async function serve(
  read: (record: FileRecorder) => ServerOptions,
  terminal: Terminal,
  pidFile?: string,
  exposed: () => readonly string[] = () => [],
): Promise<number> {
  const signals = new StopSignals()
  setTitle('')
  // What hooks print may be lost. That is no failure of the server.
  terminal.stdout.removeAllListeners('error').on('error', ignore)
  const reload = new Reload(read)
  await reload.loadHooks()
  const resolved = reload.resolved
  const logger = createLogger({ level: resolved.logLevel, format: resolved.logFormat })
  using _bugs = endByBug(logger)
  for (const warning of [...unknownVariables(terminal.env), ...warningsOf(resolved), ...exposed()]) logger.warn(warning)

  await using _traces = await sendTraces(terminal.env, logger)
  // Imported here, so that the other commands start without the transports.
  const { createServer } = await import('../../create-server.js')
  if (signals.isStopping) return EXIT.OK
  const server = createServer({ ...reload.options, logger })
  await reload.start(server, logger)
  const starting = server.start()
  signals.onReload = () => {
    // Also when the options turn out to be wrong: the tool that has moved the file waits for this.
    server.reopenAuditLog()
    reload.all()
  }
  // A signal may arrive while the server still waits for its broker.
  const isEarly = await Promise.race([signals.first.then(() => true), starting.then(ignore, ignore)])
  if (isEarly === true) {
    reload.stop()
    return await stop(server, { drainMs: 0, delayMs: 0 }, logger)
  }
  const address = await starting.catch((error: unknown) => {
    throw withHint(error, resolved)
  })
  setTitle(unixPathOf(resolved.host) === undefined ? ` :${address.port}` : ` ${resolved.host}`)
  await using _pidFile = pidFile === undefined ? undefined : await writePidFile(pidFile, logger)
  const { adminAddress } = server
  const adminUrl = adminAddress === undefined ? undefined : httpUrlOf(adminAddress)
  const [signal] = await Promise.all([
    signals.first,
    writeStart(describeStart(address.url, resolved, terminal, adminUrl), logger),
  ])
  const { drainTimeoutMs: drainMs, drainDelayMs: delayMs } = reload.resolved
  reload.stop()
  logger.info({ signal, drainTimeoutMs: drainMs, drainDelayMs: delayMs }, 'stopping; a second signal stops at once')
  return await stop(server, { drainMs, delayMs }, logger)
}

function httpUrlOf({ host, port }: TransportAddress): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

const ignore = (): undefined => undefined

/** After a bug the state is unknown, so the process ends; the supervisor starts another. */
function endByBug(logger: Logger): Disposable {
  const end = (err: unknown, origin: string) => {
    logger.fatal({ err, origin }, 'the server ends because of a bug')
    process.exit(EXIT.FAILED)
  }
  process.on('uncaughtException', end)
  return {
    [Symbol.dispose]() {
      process.off('uncaughtException', end)
    },
  }
}

/** Stops a server, also one that is still starting, and ends the process if it takes too long. */
async function stop(server: WebMQServer, times: { drainMs: number; delayMs: number }, logger: Logger): Promise<number> {
  const deadlineMs = times.drainMs + times.delayMs + STOP_GRACE_MS
  const deadline = setTimeout(() => {
    const resources = process.getActiveResourcesInfo()
    logger.fatal({ deadlineMs, resources }, 'the server did not stop in time; ending the process')
    process.exit(EXIT.FAILED)
  }, deadlineMs)
  await server.stop(times)
  clearTimeout(deadline)
  return EXIT.OK
}

function withHint(error: unknown, { host, port }: ResolvedOptions): unknown {
  if (!(error instanceof WebMQError) || error.code !== 'E_ADDRESS_IN_USE') return error
  // Another port of this server is taken, or a Unix socket, and the error names it.
  if (error.message.includes('adminPort') || unixPathOf(host) !== undefined) return error
  const other = port < 65_535 ? port + 1 : port - 1
  return new WebMQError('E_ADDRESS_IN_USE', {
    detail: `another process listens on port ${port} of ${host}; stop it, or use another port: --port ${other}, or --port 0 for any free one`,
    cause: error,
  })
}

/** What ps shows instead of `node` and its arguments. Linux cuts what pgrep, killall and top read: they get the name alone. */
function setTitle(place: string): void {
  process.title = `webmq-server${place}`
  if (process.platform === 'linux') writeFileSync('/proc/self/comm', 'webmq-server')
}

/** For scripts that wait for it. It is lost when nobody reads standard output, or that fails; the log says so. */
async function writeStart(message: string, logger: Logger): Promise<void> {
  const failure = 'the start message cannot be written to standard output'
  const writer = standardWriter(1, (err) => logger.warn({ err }, failure))
  writer.write(message, linesOf(logger) ?? noLines())
  if (!(await writer.flush(OUTPUT_LIMIT_MS))) logger.warn({ limitMs: OUTPUT_LIMIT_MS }, failure)
  writer.close()
}

/**
 * Writes a file with the number of this process, for tools that send it signals. It is removed when the process ends in order.
 * A file that cannot be written is no reason to stop a server that listens: the log says so.
 */
async function writePidFile(file: string, logger: Pick<Logger, 'warn'>): Promise<AsyncDisposable> {
  const attempt = async (act: Promise<void>, failure: string) => {
    try {
      if (!(await within(act, OUTPUT_LIMIT_MS))) logger.warn({ file, limitMs: OUTPUT_LIMIT_MS }, failure)
    } catch (err) {
      logger.warn({ err, file }, failure)
    }
  }
  await attempt(writeFile(file, `${process.pid}\n`, { flag: PID_FILE_FLAGS }), 'the pid file cannot be written')
  return { [Symbol.asyncDispose]: () => attempt(rm(file, { force: true }), 'the pid file cannot be removed') }
}
