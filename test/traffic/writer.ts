import { setTimeout as sleep } from 'node:timers/promises'
import type { Peer } from '../../packages/server/test/texts/peer.js'
import { drawText } from '../streams/units.js'
import type { TrafficNode } from './node.js'
import { LEASE_MS } from './system.js'
import type { Tally } from './tally.js'

/** Then it ends: the log forgets the beginning of a stream that lives for long. */
const MAX_APPENDS = 20
export const SETTLE_MS = 15_000
export const LOOK_MS = 100
const BEATS_PER_LEASE = 4

/** What all of a broker's actors have. */
export interface Stage {
  readonly nodes: readonly TrafficNode[]
  readonly random: () => number
  readonly tally: Pick<Tally, 'count'>
  /** What is not as it must be. Nothing is said of nodes that have ended. */
  violated(what: string): void
}

/** Where one text begins to differ from another. */
export function differenceOf(wanted: string, got: string): string {
  let at = 0
  while (at < wanted.length && wanted[at] === got[at]) at++
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 20), at + 40))
  return `is to have ${around(wanted)} at ${at}, and has ${around(got)}`
}

export function pick<T>(random: () => number, items: readonly T[]): T {
  return items[Math.floor(random() * items.length)] as T
}

/** The stream as its only writer knows it. */
interface Model {
  readonly id: string
  readonly meta: unknown
  text: string
  sequence: number
}

type Ending = 'end' | 'fail' | 'lost'

/** The only writer of its key, over one of two doors. It reads back what it has written by another. */
export class StreamActor {
  readonly #stage: Stage
  readonly #key: string
  readonly #door: 'WebSocket' | 'POST /api/streams'
  #peer: Peer | undefined
  #model: Model | undefined
  #streamCount = 0
  #beats: NodeJS.Timeout | undefined
  #wroteAtMs = 0
  /** One that it could not end has the key until its lease is over. */
  #restsUntilMs = 0

  constructor(stage: Stage, key: string, door: 'WebSocket' | 'POST /api/streams') {
    this.#stage = stage
    this.#key = key
    this.#door = door
  }

  async step(): Promise<void> {
    const { random } = this.#stage
    if (this.#model === undefined) return await this.#start()
    const chance = random()
    const isLong = this.#model.sequence >= MAX_APPENDS
    if (!isLong && chance < 0.8) return await this.#append(this.#model)
    await this.#finish(this.#model, chance < 0.88 ? 'end' : chance < 0.94 ? 'fail' : 'lost')
  }

  /** What is left is ended, and read once more. */
  async close(): Promise<void> {
    if (this.#model !== undefined) await this.#finish(this.#model, 'end')
  }

  dispose(): void {
    this.#forget()
    this.#peer?.close()
  }

  async #start(): Promise<void> {
    if (Date.now() < this.#restsUntilMs) return
    const id = `S${++this.#streamCount}-${Math.floor(this.#stage.random() * 1e9).toString(36)}`
    const meta = { key: this.#key, number: this.#streamCount }
    if (!(await this.#write(id, 0, 'start', JSON.stringify(meta)))) return
    const model = { id, meta, text: '', sequence: 0 }
    this.#model = model
    this.#beats = setInterval(() => this.#beat(model), LEASE_MS / BEATS_PER_LEASE)
  }

  /** Nobody waits for the answer. */
  #beat({ id, sequence }: Model): void {
    const beat = this.#door === 'WebSocket' ? this.#overWebSocket : this.#overHttp
    beat(id, sequence, 'beat', '').then(
      () => {
        this.#wroteAtMs = Date.now()
      },
      () => undefined,
    )
  }

  async #append(model: Model): Promise<void> {
    const text = drawText(this.#stage.random)
    // A refused append is a violation; the model then says what should be there.
    if (!(await this.#write(model.id, model.sequence + 1, 'append', JSON.stringify(text)))) return
    model.sequence++
    model.text += text
  }

  async #finish(model: Model, ending: Ending): Promise<void> {
    this.#forget()
    const result = { length: model.text.length }
    if (ending !== 'lost') {
      if (!(await this.#write(model.id, model.sequence + 1, ending, JSON.stringify(result)))) return
    } else await sleep(LEASE_MS)
    const wanted = JSON.stringify({
      ...{ stream: model.id, status: ending, meta: model.meta, text: model.text },
      ...(ending === 'lost' ? {} : { result }),
    })
    const { random, tally, violated } = this.#stage
    const read = random() < 0.5 ? this.#readOverHttp : this.#readOverWebSocket
    const deadline = Date.now() + SETTLE_MS
    let got = ''
    for (;;) {
      got = await read().catch((error: unknown) => `${error}`)
      if (got === wanted || Date.now() >= deadline) break
      await sleep(LOOK_MS)
    }
    tally.count('reading back', got === wanted ? `as written, ${ending}` : 'other')
    if (got !== wanted) violated(`${this.#key} ${differenceOf(wanted, got)}`)
  }

  /** @returns Whether the log has it. */
  async #write(id: string, sequence: number, kind: string, json: string): Promise<boolean> {
    const outcome = this.#door === 'WebSocket' ? this.#overWebSocket : this.#overHttp
    const said = await outcome(id, sequence, kind, json).catch((error: unknown) => `${error}`)
    const { tally, violated } = this.#stage
    const silentMs = Date.now() - this.#wroteAtMs
    this.#wroteAtMs = Date.now()
    tally.count(this.#door, said)
    // This process has stood still.
    const isLate = silentMs > LEASE_MS && said.includes('E_STREAM_ENDED')
    if (said !== 'ok') {
      this.#forget()
      this.#restsUntilMs = Date.now() + 2 * LEASE_MS
    }
    if (said !== 'ok' && !isLate)
      violated(`${this.#key}: ${this.#door} answers ${kind} ${sequence} of its only writer ${said}`)
    return said === 'ok'
  }

  /** What is left of it ends with its lease; the next one begins then. */
  #forget(): void {
    clearInterval(this.#beats)
    this.#model = undefined
  }

  readonly #overWebSocket = async (id: string, sequence: number, kind: string, json: string): Promise<string> => {
    const peer = await this.#connected()
    if (kind !== 'beat') peer.frames = []
    const header = (request: string) => `stream ${request} ${this.#key} of=${id} seq=${sequence} kind=${kind}`
    return peer.refusalIn(await peer.ask(header, Buffer.from(json))) ?? 'ok'
  }

  readonly #overHttp = async (stream: string, sequence: number, kind: string, json: string): Promise<string> => {
    const head = JSON.stringify({ key: this.#key, stream, sequence, kind }).slice(0, -1)
    const body = Buffer.from(json === '' ? `${head}}` : `${head},"payload":${json}}`)
    const type = { 'content-type': 'application/json' }
    const { status, body: answer } = await this.#anyNode.http('POST', '/api/streams', body, type)
    return status === 200 ? 'ok' : `${status} ${answer.toString('utf8', 0, 100)}`
  }

  readonly #readOverHttp = async (): Promise<string> => {
    const { status, body } = await this.#anyNode.http('GET', `/api/streams?key=${this.#key}`)
    if (status !== 200) return `${status} ${body}`
    const read = JSON.parse(body.toString()) as Record<string, unknown>
    return shown(read, read.text)
  }

  readonly #readOverWebSocket = async (): Promise<string> => {
    const peer = await this.#anyNode.peer()
    try {
      const answer = await peer.ask((id) => `read ${id} ${this.#key}`)
      const refusal = peer.refusalIn(answer)
      if (refusal !== undefined) return refusal
      const hasText = / replayed=1( |$)/.test(answer?.header ?? '')
      const message = hasText
        ? await peer.next(({ verb, name }) => verb === 'message' && name === this.#key)
        : undefined
      const text = message === undefined ? '' : JSON.parse(String(message.body))
      return shown(JSON.parse(String(answer?.body)), text)
    } finally {
      peer.close()
    }
  }

  async #connected(): Promise<Peer> {
    if (this.#peer === undefined || this.#peer.closeCode !== undefined) this.#peer = await this.#anyNode.peer()
    return this.#peer
  }

  get #anyNode(): TrafficNode {
    return pick(this.#stage.random, this.#stage.nodes)
  }
}

/** In the order of the model. */
function shown({ stream, status, meta, result, isCut }: Record<string, unknown>, text: unknown): string {
  return JSON.stringify({ stream, status, meta, text: text ?? '', result, isCut })
}
