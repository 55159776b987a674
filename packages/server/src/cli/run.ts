import { CommanderError } from 'commander'
import { WebMQError } from 'webmq-client/protocol'
import { EXIT, exitCodeOf } from './exit-codes.js'
import { createProgram } from './program.js'
import { paint, type Terminal } from './terminal.js'

/**
 * Runs a command line and resolves to the exit code. Errors are one sentence on standard error, and where to read more.
 *
 * @param args The arguments after the program name.
 */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  let exitCode: number = EXIT.OK
  const program = createProgram(terminal, (code) => {
    exitCode = code
  })
  try {
    await program.parseAsync(args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.OK : EXIT.USAGE
    return report(error, terminal)
  }
}

function report(error: unknown, { stderr, env }: Terminal): number {
  const label = paint('error:', 'red', stderr, env)
  if (error instanceof WebMQError) {
    stderr.write(`${label} ${error.message} (${error.code})\n`)
    stderr.write(`${paint(`webmq-server explain ${error.code} says more`, 'dim', stderr, env)}\n`)
    return exitCodeOf(error.code)
  }
  // An unexpected error is a bug, so the stack is printed.
  stderr.write(`${label} ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
  return EXIT.FAILED
}
