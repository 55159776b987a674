import { EXIT } from './exit-codes.js'
import { run } from './run.js'
import { warn } from './terminal.js'

/** Time for the process to end by itself after a command. Anything that takes longer is a bug and is ended. */
const EXIT_GRACE_MS = 500

const { env, stdin, stdout, stderr } = process
const terminal = { env, stdin, stdout, stderr }
// In `webmq-server config schema | head`, the reader may close the pipe early.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exitCode = error.code === 'EPIPE' ? EXIT.OK : EXIT.FAILED
})
process.exitCode = await run(process.argv.slice(2), terminal)
setTimeout(() => {
  warn(`something keeps the process running (${process.getActiveResourcesInfo().join(', ')}); ending it`, terminal)
  process.exit()
}, EXIT_GRACE_MS).unref()
