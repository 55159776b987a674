import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { Attacker, type AttackSettings } from './attacker.js'
import { hostileCases } from './cases/index.js'
import type { AttackCommand, Attacked } from './messages.js'
import { SocketEnded } from './raw-socket.js'
import { Tally } from './tally.js'

/** The process of the hostile clients: one attack per command line, until standard input closes. */
createInterface({ input: process.stdin })
  .on('line', (line) => {
    const command = JSON.parse(line) as AttackCommand | { readonly cmd: 'quit' }
    if (command.cmd === 'quit') process.exit(0)
    attack(command).then(write, (error: unknown) => write({ event: 'error', message: String(error) }))
  })
  .on('close', () => process.exit(0))
write({ event: 'ready' })

async function attack(command: AttackCommand): Promise<Attacked> {
  const chosen = hostileCases.find(({ name }) => name === command.case)
  if (chosen === undefined) throw new Error(`there is no case '${command.case}'`)
  const { port, operationsPerSecond, bytesPerSecond, jwtSecret, durationMs } = command
  const tally = new Tally()
  const over = new AbortController()
  const settings: AttackSettings = {
    port,
    limits: { operationsPerSecond, bytesPerSecond },
    signal: over.signal,
    tally,
    ...(jwtSecret === undefined ? {} : { jwtSecret }),
  }
  const clients = Array.from({ length: command.clients }, (_, index) => new Attacker(index, settings))
  const bugs: Record<string, number> = {}
  const start = process.cpuUsage()
  const attacks = clients.map(async (client) => {
    try {
      await chosen.attack(client)
    } catch (error) {
      if (over.signal.aborted || error instanceof SocketEnded) return
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      bugs[text] = (bugs[text] ?? 0) + 1
    }
  })
  await sleep(durationMs)
  over.abort(new Error('the attack is over'))
  await Promise.all(clients.map((client) => client.end()))
  await Promise.all(attacks)
  // Connections that were being made while the others ended.
  await Promise.all(clients.map((client) => client.end()))
  const { user, system } = process.cpuUsage(start)
  return { event: 'attacked', ...tally.report(), cpuSeconds: (user + system) / 1_000_000, bugs }
}

function write(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`)
}
