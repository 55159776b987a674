import pino, { type DestinationStream } from 'pino'
import { type LineCounts, noLines, standardWriter } from './line-writer.js'

/** Log levels, lowest first; `silent` writes nothing. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** One of {@link LOG_LEVELS}. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Format of log lines: `auto` is `pretty` on a terminal, otherwise `json`. */
export type LogFormat = 'auto' | 'pretty' | 'json'

/** Writes one line: a message and searchable fields. An `err` field is written with its stack. */
export interface LogMethod {
  (message: string): void
  (fields: object, message?: string): void
}

/** The logger interface of the server; a pino logger fits. */
export interface Logger {
  readonly trace: LogMethod
  readonly debug: LogMethod
  readonly info: LogMethod
  readonly warn: LogMethod
  readonly error: LogMethod
  readonly fatal: LogMethod
  /** A logger that adds these fields to every line. */
  child(bindings: Record<string, unknown>): Logger
}

export interface LoggerOptions {
  /** Default `info`. */
  readonly level?: LogLevel
  /** Default `auto`. */
  readonly format?: LogFormat
  /** Target of the lines; default standard error. With any other target, `auto` is `json`. */
  readonly destination?: DestinationStream
  /** Colours in pretty lines; by default only on a terminal without `NO_COLOR` (no-color.org). */
  readonly color?: boolean
}

interface OwnLogger {
  readonly pino: { level: string }
  readonly lines: LineCounts | undefined
}

/** Loggers of {@link createLogger}, and nobody else's. */
const ownLoggers = new WeakMap<Logger, OwnLogger>()

/** Sets the lowest level that a logger of {@link createLogger} writes. Leaves other loggers alone. */
export function setLogLevel(logger: Logger, level: LogLevel): void {
  const own = ownLoggers.get(logger)
  if (own !== undefined) own.pino.level = level
}

/** The lines of a logger of {@link createLogger} to standard error, and of its children; `undefined` of other loggers. */
export function linesOf(logger: Logger): LineCounts | undefined {
  return ownLoggers.get(logger)?.lines
}

const REDACTED = '[redacted]'

/** Fields whose values are never written, at the top level of a line and one level below. */
const SECRET_FIELDS = ['token', 'secret', 'password', 'authorization', 'cookie', '["sec-websocket-protocol"]']

/**
 * Creates a logger to standard error, which keeps standard output free for data. It waits for nobody who reads that;
 * {@link LineWriter} says which lines are dropped, and the end of the process writes the last ones.
 *
 * Secret fields are replaced, and so is any text that looks like a token, for example in error messages and addresses.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const lines = noLines()
  const toStandardError = { write: (line: string) => standardWriter(2).write(line, lines) }
  const { level = 'info', format = 'auto', destination = toStandardError } = options
  const isTerminal = options.destination === undefined && process.stderr.isTTY === true
  const isPretty = format === 'pretty' || (format === 'auto' && isTerminal)
  const { color = isTerminal && (process.env.NO_COLOR ?? '') === '' } = options
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_FIELDS.flatMap(redactedPaths), censor: REDACTED },
      hooks: { streamWrite: hideTokens },
    },
    isPretty ? prettified(destination, color) : destination,
  )
  ownLoggers.set(logger, { pino: logger, lines: destination === toStandardError ? lines : undefined })
  return logger
}

function prettified(destination: DestinationStream, hasColor: boolean): DestinationStream {
  return { write: (line) => destination.write(prettyLine(line, hasColor)) }
}

/** Styles of the levels, readable on dark and light terminals; `trace` and `debug` are plain. */
const LEVEL_STYLES: Readonly<Record<string, number>> = { info: 32, warn: 33, error: 31, fatal: 31 }
const DIM = 2

/**
 * A line of JSON as `10:15:00.123 WARN slow consumer {"user":"alice"}`, in local time. The stack of an `err` follows on
 * lines of its own.
 */
function prettyLine(line: string, hasColor: boolean): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as PinoLine
  const { type: _, name: __, message: ___, stack, ...errorFields } = err ?? {}
  const style = (text: string, code: number | undefined) =>
    hasColor && code !== undefined ? `\u001b[${code}m${text}\u001b[0m` : text
  const all = Object.keys(errorFields).length === 0 ? fields : { ...fields, err: errorFields }
  const parts = [
    style(localTime(new Date(time)), DIM),
    style(level.toUpperCase(), LEVEL_STYLES[level]),
    ...(msg === undefined ? [] : [msg]),
    ...(Object.keys(all).length === 0 ? [] : [style(JSON.stringify(all), DIM)]),
  ]
  return `${parts.join(' ')}\n${stack === undefined ? '' : `${stack.replaceAll(/^/gm, '    ')}\n`}`
}

/** What {@link createLogger} makes pino write. */
interface PinoLine {
  readonly level: string
  readonly time: string
  readonly msg?: string
  readonly err?: { readonly type?: string; readonly name?: string; readonly message?: string; readonly stack?: string }
}

function localTime(date: Date): string {
  const [hours, minutes, seconds] = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) =>
    String(part).padStart(2, '0'),
  )
  return `${hours}:${minutes}:${seconds}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

function redactedPaths(field: string): string[] {
  const nested = field.startsWith('[') ? field : `.${field}`
  return [field, `*${nested}`, `*.headers${nested}`]
}

/**
 * Replaces text that looks like a token: a JWT, the value after `Bearer`, a `token=` in a query. A line of JSON stays one:
 * nothing that is replaced contains a quote or a backslash.
 */
export function hideTokens(text: string): string {
  return text
    .replace(/(?<![\w-])eyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g, REDACTED)
    .replace(/((?:bearer[ .]|[?&](?:access_)?token=))[^\s"'\\&,[\]]+/gi, `$1${REDACTED}`)
}
