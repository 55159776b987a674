import { runCli } from './cli.js'
import { EXIT } from './exit-codes.js'

const interrupt = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    // The second one does not wait for the schedule.
    if (interrupt.signal.aborted) process.exit(EXIT.interrupted)
    interrupt.abort()
  })
}
const { stdout, stderr } = process
const code = await runCli(process.argv.slice(2), { stdout, stderr, signal: interrupt.signal })
// What was written to a pipe is on its way. Node 20 does not end by itself after sockets were reset.
stdout.write('', () => process.exit(code))
