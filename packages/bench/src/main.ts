import { runCli } from './cli.js'
import { EXIT } from './exit-codes.js'

const interrupted = new AbortController()

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // A second one means now; the backends end by themselves when their channel closes.
    if (interrupted.signal.aborted) process.exit(EXIT.interrupted)
    interrupted.abort(new Error(`interrupted by ${signal}`))
  })
}

process.exitCode = await runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interrupted.signal,
})
