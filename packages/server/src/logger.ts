import pino, { type DestinationStream } from 'pino'
import { prettyFactory } from 'pino-pretty'

/** Levels of the log, least serious first; `silent` writes nothing. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

/** One of {@link LOG_LEVELS}. */
export type LogLevel = (typeof LOG_LEVELS)[number]

/** How log lines look: `auto` is `pretty` on a terminal, else `json`. */
export type LogFormat = 'auto' | 'pretty' | 'json'

/** Writes one line: a message, and fields that a machine can search for. An `err` field is written with its stack. */
export interface LogMethod {
  (message: string): void
  (fields: object, message?: string): void
}

/** What the server logs to; a pino logger fits. */
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

/** How {@link createLogger} writes. */
export interface LoggerOptions {
  /** Default `info`. */
  readonly level?: LogLevel
  /** Default `auto`. */
  readonly format?: LogFormat
  /** Where lines go; default standard error. Given one, `auto` is `json`. */
  readonly destination?: DestinationStream
  /** Colours in pretty lines; by default on a terminal, unless `NO_COLOR` is set (no-color.org). */
  readonly color?: boolean
}

const REDACTED = '[redacted]'

/** Fields whose value is never written, at the top of a line or one level below. */
const SECRET_FIELDS = ['token', 'secret', 'password', 'authorization', 'cookie', '["sec-websocket-protocol"]']

/**
 * A logger to standard error, so that standard output stays free for data. Writes before the call returns: the last
 * line before an exit is not lost.
 *
 * Nothing that looks like a token leaves: secret fields are replaced, and so are tokens inside of texts, such as the
 * message of an error or an address with a query.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const { level = 'info', format = 'auto', destination = pino.destination({ dest: 2, sync: true }) } = options
  const isTerminal = options.destination === undefined && process.stderr.isTTY === true
  const isPretty = format === 'pretty' || (format === 'auto' && isTerminal)
  const { color = isTerminal && (process.env.NO_COLOR ?? '') === '' } = options
  return pino(
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
}

/** Line by line, without pino-pretty's stream: that writes later, and loses the last lines when the process exits. */
function prettified(destination: DestinationStream, colorize: boolean): DestinationStream {
  const prettify = prettyFactory({ colorize, singleLine: true, translateTime: 'SYS:HH:MM:ss.l' })
  return { write: (line) => destination.write(prettify(line)) }
}

function redactedPaths(field: string): string[] {
  const nested = field.startsWith('[') ? field : `.${field}`
  return [field, `*${nested}`, `*.headers${nested}`]
}

/** Replaces everything in a text that looks like a token: a JWT, what follows `Bearer`, a `token=` of a query. */
export function hideTokens(text: string): string {
  return text
    .replace(/(?<![\w-])eyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?/g, REDACTED)
    .replace(/((?:bearer[ .]|[?&](?:access_)?token=))[^\s"'&,[\]]+/gi, `$1${REDACTED}`)
}
