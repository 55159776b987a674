import { CommanderError } from 'commander'
import { EXIT, reportError } from './exit-codes.js'
import { createProgram } from './program.js'
import type { Terminal } from './terminal.js'

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
    return reportError(error, terminal)
  }
}
