import { createInterface } from 'node:readline'
import type { ProbeCommand, ProbeConnectCommand, Probed } from './messages.js'
import { Prober } from './prober.js'

/** The process of the prober: commands by lines, until standard input closes. */
const prober = new Prober()
createInterface({ input: process.stdin })
  .on('line', (line) => {
    answer(JSON.parse(line) as ProbeCommand | ProbeConnectCommand | { readonly cmd: 'quit' }).then(
      write,
      (error: unknown) => write({ event: 'error', message: error instanceof Error ? error.message : String(error) }),
    )
  })
  .on('close', () => process.exit(0))
write({ event: 'ready' })

async function answer(
  command: ProbeCommand | ProbeConnectCommand | { readonly cmd: 'quit' },
): Promise<Probed | { readonly event: 'connected' }> {
  switch (command.cmd) {
    case 'connect':
      await prober.connect(command)
      return { event: 'connected' }
    case 'probe':
      return await prober.probe(command)
    case 'quit':
      process.exit(0)
  }
}

function write(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}
