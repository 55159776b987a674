import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { freePort, sharedService } from 'webmq-services'
import { firstAndInTurn } from '../../../../test/in-turn.js'
import { createServer, type ServerOptions } from '../../src/index.js'

const PROCESS = fileURLToPath(new URL('stopped-start-process.mjs', import.meta.url))
/** So many moments of a start are tried, spread over all of it; which, changes from run to run. */
const MOMENT_COUNT = Number(process.env.WEBMQ_STOP_MOMENTS ?? 40)
/** Without it, a server has no tables between nodes, and its start does not wait for others. */
const ALL: ServerOptions = { apiKeys: ['a-key-of-16-bytes'], logLevel: 'silent', host: '127.0.0.1', port: 0 }

type BrokerKind = 'memory' | 'mesh' | 'redis' | 'nats' | 'rabbitmq'

/** Options of a server, and of another one that it finds when it starts. */
async function optionsOf(kind: BrokerKind): Promise<{ own: ServerOptions; other?: ServerOptions }> {
  const ofAll = { ...ALL, brokerNamespace: `stopped-${process.pid}-${Date.now()}` }
  if (kind === 'memory') return { own: { ...ALL, history: ['logged.#=100'] } }
  if (kind === 'mesh') {
    // One name, which has to be looked up: as in a container.
    const [own, other] = [`localhost:${await freePort()}`, `127.0.0.1:${await freePort()}`]
    const meshOf = (listen: string, peer: string) => ({
      ...ofAll,
      broker: `mesh://${peer}`,
      mesh: { listen, secret: 'a secret that both know' },
    })
    return { own: meshOf(own, other), other: meshOf(other, own.replace('localhost', '127.0.0.1')) }
  }
  const options = { ...ofAll, broker: (await sharedService(kind)).url, history: ['logged.#=100'] }
  return { own: options, other: options }
}

interface Result {
  readonly moments: number
  /** Threads that came with the stopped starts and did not end. */
  readonly threads: number
  readonly results: readonly { readonly at: number; readonly how: string; readonly left: readonly string[] }[]
}

async function play(options: ServerOptions, stride: number, offset: number): Promise<Result> {
  const child = fork(PROCESS, [JSON.stringify({ options, stride, offset })])
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  let result: Result | undefined
  child.on('message', (message: Result) => {
    result = message
  })
  await expect.poll(() => result ?? child.exitCode, { timeout: 120_000 }).not.toBeNull()
  // It ends by itself: nothing is left that keeps it.
  await expect.poll(() => child.exitCode, { timeout: 10_000, message: JSON.stringify(result) }).toBe(0)
  if (result === undefined) throw new Error('it has told nothing')
  return result
}

// Symptom: a server that was stopped while it started stayed a node for the others, with connections, a port and timers.
// Cause: a start that had gone past its broker was not looked at again, and who gave it up stopped only what had begun before.
describe.each(firstAndInTurn(['mesh', 'memory', 'redis', 'nats', 'rabbitmq'] as const))('a server on %s', (kind) => {
  it('leaves nothing when it is stopped, at any moment of its start', async () => {
    const { own, other } = await optionsOf(kind)
    const witness = other && createServer(other)
    onTestFinished(() => witness?.stop())
    await witness?.start()
    const { moments } = await play(own, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    const stride = Math.max(1, Math.floor(moments / MOMENT_COUNT))
    const { results, threads } = await play(own, stride, Math.floor(Math.random() * stride))
    const hows = results.map(({ how }) => how)
    console.log(`${kind}: ${moments} moments, stopped at ${results.length}, every ${stride}: ${hows.join(' ')}`)
    expect(results.filter(({ left }) => left.length > 0)).toEqual([])
    expect(hows.filter((how) => how !== 'started' && how !== 'E_NOT_RUNNING')).toEqual([])
    expect(hows.filter((how) => how === 'E_NOT_RUNNING').length).toBeGreaterThan(results.length / 2)
    // The threads of the library that loads files come when they are needed.
    expect(threads).toBeLessThanOrEqual(4)
    if (witness !== undefined) await expect.poll(() => witness.stats().cluster.peerCount, { timeout: 3_000 }).toBe(0)
  })
})
