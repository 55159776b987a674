import { beforeEach, expect, it } from 'vitest'
import type { Broker, BrokerCapabilities, HistoryOptions, Position, ReadRange } from 'webmq-server/ports'
import { RetainRules } from 'webmq-server/ports'
import { describeWhere, itWhere } from '../applies.js'
import { eventually } from '../transport/eventually.js'
import { type BrokerHarness, deliveryOf, type RunningNode, text } from './harness.js'
import { historyOf } from './history-of.js'

const MAX_KEYS = 20
const MAX_BYTES = 10_000

/** A log that soon drops messages, with retained keys. */
const STATE: HistoryOptions = {
  ...historyOf('#=200'),
  historyMaxMessages: 200,
  historyMaxBytes: 200_000,
  retain: new RetainRules(['state.#'], { maxKeys: MAX_KEYS, maxBytes: MAX_BYTES }),
}

/** The last message of each key: read at one position, joined with live messages, kept when the log drops it. */
export function stateTests(harness: () => BrokerHarness, expected: BrokerCapabilities): void {
  describeWhere(expected.history && !expected.sharedLog)('state', () => {
    it('retains nothing where each node has a log of its own, and says so', async () => {
      const { broker } = await harness().startNode(STATE)
      expect(broker.capabilities.retained).toBe(false)
      expect(broker.retains?.('state.a') ?? false).toBe(false)
      await expect(async () => await broker.read({ isState: true }, ['state.#'])).rejects.toMatchObject({
        code: 'E_UNSUPPORTED',
      })
    })
  })

  describeWhere(expected.sharedLog)('state', () => {
    let node: RunningNode
    let broker: Broker

    beforeEach(async () => {
      node = await harness().startNode(STATE)
      broker = node.broker
    })

    const set = async (key: string, value: string, on = broker) => (await on.publish(text(key, value))).position

    it('has the last message of each retained key, in the order of the log', async () => {
      expect(broker.capabilities.retained).toBe(true)
      await set('state.a', 'a1')
      await set('state.b', 'b1')
      await set('other', 'x')
      const last = await set('state.a', 'a2')
      expect(await stateOf(broker)).toEqual({ 'state.a': 'a2', 'state.b': 'b1' })
      const { messages, position, isPartial } = await broker.read({ isState: true }, ['state.*'])
      expect(messages.map(({ key }) => key)).toEqual(['state.b', 'state.a'])
      expect([messages.at(-1)?.position, position, isPartial]).toEqual([last, last, false])
    })

    it('removes a key by an empty payload, and tells those who read on', async () => {
      await set('state.a', 'a1')
      const before = await set('state.b', 'b1')
      await set('state.a', '')
      expect(await stateOf(broker)).toEqual({ 'state.b': 'b1' })
      const { messages } = await broker.read({ isState: true, ...sinceOf(before) }, ['state.#'])
      expect(messages.map((message) => [message.key, deliveryOf(message).text])).toEqual([['state.a', '']])
      await set('state.a', 'a2')
      expect(await stateOf(broker)).toEqual({ 'state.a': 'a2', 'state.b': 'b1' })
    })

    it('says which keys are retained, and those alone have a state', async () => {
      for (const key of ['state', 'state.a.b', 'state2.a', 'other', 'a.state', '$state']) {
        const state = async () => await broker.read({ isState: true }, [key])
        const isRetained = await state().then(
          () => true,
          () => false,
        )
        expect([key, broker.retains?.(key)]).toEqual([key, isRetained])
      }
      expect(['state.a', '$state', 'other'].map((key) => broker.retains?.(key))).toEqual([true, false, false])
    })

    it('refuses to read keys that no rule retains', async () => {
      for (const pattern of ['#', 'other', 'state2.#', '*.a']) {
        await expect(async () => await broker.read({ isState: true }, [pattern])).rejects.toMatchObject({
          code: 'E_UNSUPPORTED',
        })
      }
      expect((await broker.read({ isState: true }, ['state.x.#', 'state.a'])).messages).toEqual([])
    })

    it('refuses one key too many, and takes it once another is removed', async () => {
      for (let index = 0; index < MAX_KEYS; index++) await set(`state.${index}`, 'v')
      await expect(set('state.more', 'v')).rejects.toMatchObject({ code: 'E_STATE_LIMIT' })
      await set('state.0', 'another value')
      await set('state.1', '')
      await set('state.more', 'v')
      expect(Object.keys(await stateOf(broker))).toHaveLength(MAX_KEYS)
      expect(broker.stats().retained).toMatchObject({ keyCount: MAX_KEYS, droppedCount: 0 })
    })

    it('refuses bytes beyond the limit, of a new key and of a known one', async () => {
      const large = 'x'.repeat(MAX_BYTES - 100)
      await set('state.a', large)
      await set('state.b', 'small')
      for (const key of ['state.b', 'state.c'])
        await expect(set(key, large)).rejects.toMatchObject({ code: 'E_STATE_LIMIT' })
      await set('state.a', 'small')
      await set('state.b', large)
    })

    it('counts keys that are on their way to the broker', async () => {
      const keys = Array.from({ length: 3 * MAX_KEYS }, (_, index) => `state.${index}`)
      const results = await Promise.allSettled(keys.map((key) => set(key, 'v')))
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(MAX_KEYS)
    })

    it('says a gap for a position of another epoch, and gives nothing', async () => {
      await set('state.a', 'a1')
      const range = { isState: true, since: { epoch: 'another', offset: 1, fingerprint: 1 } }
      expect(await broker.read(range, ['state.#'])).toMatchObject({ gap: 'epoch-changed', messages: [] })
    })

    // Without copies in the log, a key that nobody changes would be gone.
    it('keeps a quiet key, and a removed one stays removed, when the log has dropped both', async () => {
      await set('state.quiet', 'quiet')
      await set('state.gone', 'gone')
      await set('state.gone', '')
      const position = (await broker.read({ isState: true }, ['state.quiet'])).messages[0]?.position
      for (let round = 0; round < 30; round++) {
        const bodies = Array.from({ length: 50 }, (_, index) => `${round} ${index}`.padEnd(100))
        await Promise.all(bodies.map((body, index) => set(index % 2 === 0 ? 'state.busy' : 'other', body)))
      }
      const late = await harness().startNode(STATE)
      for (const { broker } of expected.manyNodes ? [node, late] : [node]) {
        const { messages } = await broker.read({ isState: true }, ['state.quiet', 'state.gone'])
        const present = messages.map(deliveryOf).filter(({ text }) => text !== '')
        expect(present.map(({ key, text, position }) => ({ key, text, position }))).toEqual([
          { key: 'state.quiet', text: 'quiet', position },
        ])
      }
    })

    itWhere(expected.durable)('has the state after all nodes have stopped', async () => {
      await set('state.a', 'a1')
      await set('state.b', 'b1')
      await set('state.a', '')
      await harness().stopNodes()
      const { broker: next } = await harness().startNode(STATE)
      expect(await stateOf(next)).toEqual({ 'state.b': 'b1' })
    })

    it('joins pages of the state with changes, while all nodes publish', async () => {
      const nodes = expected.manyNodes ? [node, await harness().startNode(STATE)] : [node]
      let isPublishing = true
      const publishing = Promise.all(nodes.map(({ broker }, index) => publishAtRandom(broker, 300, index + 1)))
      const stopped = publishing.finally(() => {
        isPublishing = false
      })
      const readers = nodes.map(async ({ broker }) => {
        const reader = new StateReader(broker)
        while (isPublishing) {
          await reader.readPage()
          await new Promise((resolve) => setImmediate(resolve))
        }
        return reader
      })
      await stopped
      const end = nodes[0]?.broker.position()
      for (const reader of await Promise.all(readers)) {
        await eventually(async () => {
          await reader.readPage()
          expect((await reader.broker.position())?.offset).toBeGreaterThanOrEqual((await end)?.offset ?? 0)
          expect(reader.state).toEqual(await stateOf(broker))
        })
      }
    })
  })
}

function sinceOf(since: Position | undefined): Partial<ReadRange> {
  return since === undefined ? {} : { since }
}

async function stateOf(broker: Broker): Promise<Record<string, string>> {
  const { messages } = await broker.read({ isState: true }, ['state.#'])
  const entries = messages.map(deliveryOf).map(({ key, text }) => [key, text] as const)
  return Object.fromEntries(entries.filter(([, text]) => text !== ''))
}

/** Follows the state in small pages, as a client does. */
class StateReader {
  readonly broker: Broker
  state: Record<string, string> = {}
  #position: Position | undefined

  constructor(broker: Broker) {
    this.broker = broker
  }

  async readPage(): Promise<void> {
    const range = { isState: true, limit: 3, ...sinceOf(this.#position) }
    const { messages, position, gap } = await this.broker.read(range, ['state.#'])
    if (gap !== undefined) {
      this.#position = undefined
      this.state = {}
      return
    }
    for (const { key, text } of messages.map(deliveryOf)) {
      if (text === '') delete this.state[key]
      else this.state[key] = text
    }
    this.#position = position
  }
}

/** Sets and removes keys, a few at once. */
async function publishAtRandom(broker: Broker, count: number, seed: number): Promise<void> {
  const random = randomOf(seed)
  for (let at = 0; at < count; at += 10) {
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        broker.publish(text(`state.${random(12)}`, random(4) === 0 ? '' : `${seed} ${at + index}`)),
      ),
    )
  }
}

/** Numbers below a bound, the same for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}
