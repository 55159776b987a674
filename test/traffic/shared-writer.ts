import { setTimeout as sleep } from 'node:timers/promises'
import { drawText } from '../streams/units.js'
import { differenceOf, LOOK_MS, pick, SETTLE_MS, type Stage } from './writer.js'

const MAX_APPENDS = 15
const TEXT = 'text/plain'
const JSON_TYPE = 'application/json'

/** The only writer of an address of the protocol Durable Streams. */
export class SharedActor {
  readonly #stage: Stage
  readonly #path: string
  #content: string[] | undefined
  #type = TEXT
  /** By its last answer. */
  #isGone = false

  constructor(stage: Stage, key: string) {
    this.#stage = stage
    this.#path = `/streams/${key}`
  }

  async step(): Promise<void> {
    const { random } = this.#stage
    if (this.#content === undefined) return await this.#create()
    if (this.#content.length < MAX_APPENDS && random() < 0.75) return await this.#append(this.#content)
    await this.close()
  }

  /** Closes it, reads it by another node, and deletes it. */
  async close(): Promise<void> {
    const content = this.#content
    if (content === undefined) return
    this.#content = undefined
    await this.#ask('POST', [204], undefined, { 'stream-closed': 'true' })
    const got = await this.#ask('GET', [200])
    const wanted = this.#type === TEXT ? content.join('') : `[${content.join(',')}]`
    const isSame = got?.toString() === wanted
    this.#stage.tally.count('reading back', isSame ? 'as written, /streams' : 'other')
    if (!isSame) this.#stage.violated(`${this.#path} ${differenceOf(wanted, `${got}`)}`)
    await this.#ask('DELETE', [204])
    // Each node has a copy of the log, which may be a moment behind.
    const deadline = Date.now() + SETTLE_MS
    while ((await this.#ask('GET', Date.now() < deadline ? [200, 404] : [404])) !== undefined && !this.#isGone)
      await sleep(LOOK_MS)
  }

  dispose(): void {
    this.#content = undefined
  }

  async #create(): Promise<void> {
    this.#type = pick(this.#stage.random, [TEXT, JSON_TYPE])
    if ((await this.#ask('PUT', [201])) !== undefined) this.#content = []
  }

  async #append(content: string[]): Promise<void> {
    // A body is UTF-8: half a character is none.
    const text = Buffer.from(drawText(this.#stage.random)).toString()
    const piece = this.#type === TEXT ? text : JSON.stringify({ text })
    if ((await this.#ask('POST', [204], Buffer.from(piece))) !== undefined) content.push(piece)
  }

  /** @returns The body; `undefined` for another status, which is a violation. */
  async #ask(
    method: string,
    statuses: readonly number[],
    body?: Uint8Array,
    headers: Record<string, string> = {},
  ): Promise<Buffer | undefined> {
    const { nodes, random, tally, violated } = this.#stage
    const node = pick(random, nodes)
    const answer = await node
      .http(method, this.#path, body, { 'content-type': this.#type, ...headers })
      .catch((error: unknown) => ({ status: 0, body: Buffer.from(`${error}`) }))
    tally.count(`${method} /streams`, `${answer.status}`)
    this.#isGone = answer.status === 404
    if (statuses.includes(answer.status)) return answer.body
    violated(`${node.name}: ${method} ${this.#path} of its only writer: ${answer.status} ${answer.body}`)
    return undefined
  }
}
