import { WebMQError } from 'webmq-client/protocol'
import { EXIT, exitCodeOf, exitCodeOfClient } from './exit-codes.js'
import { paint, printable, type Terminal } from './terminal.js'

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
