import { EXIT } from './exit-codes.js'
import { run } from './run.js'
import { warn } from './terminal.js'

/** A command that is done lets the process end by itself; what keeps it up for longer is a bug, and must not keep people waiting. */
const EXIT_GRACE_MS = 1000

const { env, stdin, stdout, stderr } = process
const terminal = { env, stdin, stdout, stderr }
// `webmq-server config docs | head`: whoever reads may stop to.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exitCode = error.code === 'EPIPE' ? EXIT.OK : EXIT.FAILED
})
process.exitCode = await run(process.argv.slice(2), terminal)
setTimeout(() => {
  warn(`something keeps the process up (${process.getActiveResourcesInfo().join(', ')}); ending it`, terminal)
  process.exit()
}, EXIT_GRACE_MS).unref()
