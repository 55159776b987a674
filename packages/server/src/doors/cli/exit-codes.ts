import { type ErrorCode, WebMQError } from 'webmq-client/protocol'
import { SIGNALED } from './early-signals.js'
import { paint, printable, type Terminal } from './terminal.js'

/** Exit codes. A second signal ends the process with `SIGNALED` plus the signal number (130 for Ctrl-C). */
export const EXIT = {
  OK: 0,
  /** Anything that no other row names; a check of `doctor` or `config check` failed. */
  FAILED: 1,
  /** The command line, the environment or a file is wrong. */
  USAGE: 2,
  /** No connection to the server. */
  UNREACHABLE: 3,
  /** The server refuses the token, or the token does not grant this. */
  REFUSED: 4,
  /** The time of `--timeout` was over first. */
  TIMED_OUT: 5,
  SIGNALED,
} as const

/** Errors of the command line; all other errors happen at run time. */
const USAGE_ERRORS: readonly ErrorCode[] = ['E_OPTION_INVALID', 'E_INSECURE']

function exitCodeOf(code: ErrorCode): number {
  return USAGE_ERRORS.includes(code) ? EXIT.USAGE : EXIT.FAILED
}

/** How a command that is a client of a server ends, so that a script knows whether to try again. */
const OF_CLIENTS: { readonly [Code in ErrorCode]?: number } = {
  E_KEY_INVALID: EXIT.USAGE,
  E_PATTERN_INVALID: EXIT.USAGE,
  E_POSITION_INVALID: EXIT.USAGE,
  E_PAYLOAD_INVALID: EXIT.USAGE,
  E_CONNECT_FAILED: EXIT.UNREACHABLE,
  E_DISCONNECTED: EXIT.UNREACHABLE,
  E_UNAUTHENTICATED: EXIT.REFUSED,
  E_FORBIDDEN: EXIT.REFUSED,
  E_TOKEN_INVALID: EXIT.REFUSED,
  E_TOKEN_EXPIRED: EXIT.REFUSED,
  E_TOKEN_REVOKED: EXIT.REFUSED,
  E_TIMEOUT: EXIT.TIMED_OUT,
}

function exitCodeOfClient(code: ErrorCode): number {
  return OF_CLIENTS[code] ?? exitCodeOf(code)
}

/** Writes an error as one sentence to standard error, and where to read more. Returns the exit code. */
export function reportError(error: unknown, { stderr, env }: Terminal, exitCode = exitCodeOf): number {
  const label = paint('error:', 'red', stderr, env)
  if (error instanceof WebMQError) {
    // The text may be that of a server.
    stderr.write(`${label} ${printable(error.message)} (${error.code})\n`)
    stderr.write(`${paint(`webmq-server explain ${error.code} says more`, 'dim', stderr, env)}\n`)
    return exitCode(error.code)
  }
  // An unexpected error is a bug, so the stack is printed.
  stderr.write(`${label} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return EXIT.FAILED
}

/** The exit code of a command that is a client of a server; an error is written as {@link reportError} does. */
export async function reportedByClient(command: Promise<number>, terminal: Terminal): Promise<number> {
  try {
    return await command
  } catch (error) {
    return reportError(error, terminal, exitCodeOfClient)
  }
}
