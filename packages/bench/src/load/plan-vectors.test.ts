import { expect, it } from 'vitest'
import { KeyPlan, type KeyPlanOptions } from './key-plan.js'
import { PayloadEncoder } from './payload.js'
import { SendSchedule } from './send-schedule.js'

const VECTORS = '../../loadgen/vectors/clients-plan.jsonl'
const PAYLOAD_COUNT = 3

const OPTIONS: readonly (KeyPlanOptions & { readonly messageSizeBytes: number })[] = [
  {
    clientCount: 4,
    listensPerClient: 3,
    keyPoolSize: 5,
    publishRatePerSecond: 7.5,
    durationUs: 1_100_000,
    warmupUs: 500_000,
    seed: 1,
    messageSizeBytes: 120,
  },
  {
    clientCount: 3,
    listensPerClient: 9,
    keyPoolSize: 4,
    publishRatePerSecond: 3,
    durationUs: 1_000_000,
    warmupUs: 0,
    seed: 0xffff_ffff,
    messageSizeBytes: 67,
  },
  {
    clientCount: 2,
    listensPerClient: 10,
    keyPoolSize: 200,
    publishRatePerSecond: 5,
    durationUs: 700_000,
    warmupUs: 150_000,
    seed: 0,
    messageSizeBytes: 100,
  },
]

/** The load generator computes the same plan in Rust, and its tests read this file. */
it('the plan is the one in the file that the load generator is tested with', async () => {
  const vectors = OPTIONS.map(({ messageSizeBytes, ...options }) => {
    const plan = new KeyPlan(options)
    const clients = Array.from({ length: options.clientCount }, (_, client) => client)
    const publishers = clients.map((client) => plan.publisher(client))
    const encoder = new PayloadEncoder(messageSizeBytes, options.seed)
    const schedule = new SendSchedule(plan, clients)
    const sends: number[][] = []
    const payloads: string[] = []
    for (let send = schedule.shift(); send !== undefined; send = schedule.shift()) {
      const publication = publishers[send.client]?.next(send.turn, send.atUs)
      if (publication === undefined) throw new Error(`no client ${send.client}`)
      const { client, turn, key, keySequence, atUs } = publication
      sends.push([client, turn, key, keySequence, atUs])
      payloads.push(JSON.stringify(encoder.encode(publication)))
    }
    return {
      options,
      messageSizeBytes,
      listens: clients.map((client) => plan.listensOf(client)),
      listenerCounts: Array.from({ length: options.keyPoolSize }, (_, key) => plan.listenerCount(key)),
      sends,
      payloads: payloads.slice(-PAYLOAD_COUNT),
    }
  })
  const lines = vectors.map((vector) => `${JSON.stringify(vector)}\n`)
  await expect(lines.join('')).toMatchFileSnapshot(VECTORS)
})
