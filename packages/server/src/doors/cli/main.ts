import { closeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { EXIT } from './exit-codes.js'
import { run } from './run.js'
import { warn } from './terminal.js'

/** Time for the process to end by itself after a command. Anything that takes longer is a bug and is ended. */
const EXIT_GRACE_MS = 500

const { env, stdin, stdout, stderr } = process
const terminal = { env, stdin, stdout, stderr }
stdout.on('error', (error: NodeJS.ErrnoException) => {
  // In `webmq-server config schema | head`, the reader may close the pipe early.
  if (error.code === 'EPIPE') return
  warn(`standard output cannot be written: ${error.message}`, terminal)
  process.exitCode = EXIT.FAILED
})
// There is nowhere left to say it.
stderr.on('error', () => undefined)
// At the end, Node resets terminals, and aborts if one has hung up. It leaves closed descriptors alone.
const terminals = [0, 1, 2].filter(isatty)
process.on('exit', () => {
  for (const descriptor of terminals) if (!isatty(descriptor)) closeSync(descriptor)
})
const exitCode = await run(process.argv.slice(2), terminal)
process.exitCode ??= exitCode
setTimeout(() => {
  warn(`something keeps the process running (${process.getActiveResourcesInfo().join(', ')}); ending it`, terminal)
  process.exit()
}, EXIT_GRACE_MS).unref()
