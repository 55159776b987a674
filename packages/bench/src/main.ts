import { runCli } from './cli.js'
import { EXIT } from './exit-codes.js'

const interrupted = new AbortController()

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // A second signal ends the bench at once; the backends end by themselves when their channel closes.
    if (interrupted.signal.aborted) process.exit(EXIT.interrupted)
    interrupted.abort(new Error(`interrupted by ${signal}`))
  })
}

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // The reader of the output has gone, as in `| head`.
    if (error.code === 'EPIPE') process.exit(EXIT.runtime)
    throw error
  })
}

process.exitCode = await runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  signal: interrupted.signal,
  env: process.env,
})
