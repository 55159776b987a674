import { type FSWatcher, watch } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { matches } from 'webmq-client/protocol'
import {
  decodeEnvelope,
  encodeEnvelope,
  fingerprintOfText,
  type Link,
  type LinkContext,
  type LinkEvents,
  type LinkLog,
  type LinkMessage,
  type LogFollower,
  logged,
  newEpoch,
} from 'webmq-server/brokers'
import type { LogPlace, Position } from 'webmq-server/ports'

/** For systems whose watching misses a change, and for a file that is gone. */
const POLL_MS = 250
const CHUNK_BYTES = 65_536

/**
 * One open file. Its lines are messages (`L` logged, `M` not: a time and an envelope), epochs (`E`: an id, the mark), and
 * marks (`S`). The number of a line is its offset. Nodes append, which the system does in one order, and read what is new.
 */
export class FileLink implements Link, LinkLog {
  readonly log = this
  readonly #path: string
  readonly #file: FileHandle
  readonly #context: LinkContext
  readonly #events: LinkEvents
  readonly #rules: string
  /** Each pattern, and the last line before its bind. */
  readonly #bound = new Map<string, number>()
  readonly #watcher: FSWatcher
  readonly #poll: NodeJS.Timeout
  #waiting: LinkMessage[] = []
  #writing = Promise.resolve()
  #reading = Promise.resolve()
  #isOver = false
  #byteCount = 0
  #rest = ''
  #lineCount = 0
  /** Lines that were read before `follow` began anew: their messages without a log were delivered. */
  #seenCount = 0
  #epoch = { id: '', offset: 0, fingerprint: 0 }
  #mark = ''
  #follower: LogFollower | undefined
  #followsAfter = 0

  /** @param rules The hash of what this node logs. */
  static async open(path: string, rules: string, context: LinkContext, events: LinkEvents): Promise<FileLink> {
    const link = new FileLink(path, await open(path, 'a+'), rules, context, events)
    await link.#read()
    return link
  }

  constructor(path: string, file: FileHandle, rules: string, context: LinkContext, events: LinkEvents) {
    this.#path = path
    this.#file = file
    this.#rules = rules
    this.#context = context
    this.#events = events
    this.#watcher = watch(path, () => void this.#read())
    this.#watcher.on('error', (cause) => this.#lose(cause))
    this.#poll = setInterval(() => void this.#read(), POLL_MS)
  }

  async bind(pattern: string): Promise<void> {
    await this.#read()
    this.#bound.set(pattern, this.#lineCount)
  }

  async unbind(pattern: string): Promise<void> {
    this.#bound.delete(pattern)
  }

  publish(message: LinkMessage): void {
    if (this.#waiting.push(message) === 1) setImmediate(() => void this.#write())
  }

  async follow(after: Position | undefined, follower: LogFollower): Promise<void> {
    await this.#read()
    if (this.#epoch.id === '') await this.begin()
    let isContinued = after?.epoch === this.#epoch.id
    // The end of the log is lost: an older copy of the file.
    if (isContinued && (await this.#fingerprintAt(after?.offset ?? 0)) !== after?.fingerprint) {
      await this.begin()
      isContinued = false
    }
    const { id: epoch, offset, fingerprint } = this.#epoch
    const start = isContinued && after !== undefined ? after : { epoch, offset, fingerprint }
    follower.begins(start, isContinued)
    follower.began(offset)
    // Reads the file anew, for what is logged after the start.
    this.#follower = follower
    this.#followsAfter = start.offset
    this.#seenCount = this.#lineCount
    this.#reading = this.#reading.then(() => {
      this.#byteCount = 0
      this.#lineCount = 0
      this.#rest = ''
    })
    await this.#read()
  }

  async end(): Promise<LogPlace | undefined> {
    await this.#read()
    return { epoch: this.#epoch.id, offset: this.#lineCount }
  }

  risk = () => Promise.resolve('the file is not synced: a machine that fails loses its last messages')

  async isMarked(): Promise<boolean> {
    await this.#read()
    return this.#mark === this.#rules
  }

  unmark = () => this.#append('S -')

  async begin(): Promise<void> {
    await this.#append(`E ${newEpoch()} ${this.#rules}`)
  }

  async close(): Promise<void> {
    await this.#writing
    this.destroy()
  }

  destroy(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearInterval(this.#poll)
    this.#watcher.close()
    void this.#reading.then(() => this.#file.close())
  }

  #lose(cause: unknown): void {
    if (this.#isOver) return
    this.destroy()
    this.#events.lost(cause instanceof Error ? cause : new Error(String(cause)))
  }

  /** One write for all messages of a turn. */
  #write(): Promise<void> {
    const messages = this.#waiting
    this.#waiting = []
    const lines = messages.map((message) => {
      const envelope = encodeEnvelope(this.#context.node, message, message.key)
      return `${message.isLogged ? 'L' : 'M'} ${Date.now()} ${envelope.toString('base64')}`
    })
    // A logged message is accepted when it is read.
    return this.#append(lines.join('\n')).then(
      () => {
        for (const { sequence, isLogged } of messages) if (!isLogged) this.#events.confirmed(sequence, false)
      },
      (cause) => this.#lose(cause),
    )
  }

  async #append(lines: string): Promise<void> {
    const written = this.#writing.then(() => this.#file.appendFile(`${lines}\n`))
    this.#writing = written.catch(() => undefined)
    await written
    await this.#read()
  }

  /** Reads to the end. One read at a time; a fault ends the link. */
  #read(): Promise<void> {
    this.#reading = this.#reading.then(() => this.#drain()).catch((cause) => this.#lose(cause))
    return this.#reading
  }

  async #drain(): Promise<void> {
    const buffer = Buffer.alloc(CHUNK_BYTES)
    while (!this.#isOver) {
      const { bytesRead } = await this.#file.read(buffer, 0, CHUNK_BYTES, this.#byteCount)
      if (bytesRead === 0) break
      this.#byteCount += bytesRead
      const lines = `${this.#rest}${buffer.toString('latin1', 0, bytesRead)}`.split('\n')
      this.#rest = lines.pop() ?? ''
      for (const line of lines) this.#take(line)
    }
    const [ours, theirs] = this.#isOver ? [] : await Promise.all([this.#file.stat(), stat(this.#path)])
    if (ours?.ino !== theirs?.ino || (ours?.size ?? 0) < this.#byteCount) throw new Error('the file was replaced')
  }

  #take(line: string): void {
    const offset = ++this.#lineCount
    const fingerprint = fingerprintOfText(line)
    const [kind, one = '', two = ''] = line.split(' ')
    if (kind === 'E') this.#epoch = { id: one, offset, fingerprint }
    if (kind === 'E' || kind === 'S') this.#mark = kind === 'E' ? two : one
    const follower = offset > this.#followsAfter ? this.#follower : undefined
    if (kind === 'L') {
      if (follower === undefined) return
      const delivery = decodeEnvelope(undefined, Buffer.from(two, 'base64'))
      if (delivery === undefined) follower.malformed(offset, fingerprint, 'a line that is no message')
      else follower.message(logged(delivery, offset, fingerprint, Number(one)))
      return
    }
    if (kind === 'E') {
      follower?.begins({ epoch: one, offset, fingerprint }, false)
      follower?.began(offset)
    } else follower?.skipped(offset, fingerprint)
    if (kind === 'M' && offset > this.#seenCount) this.#deliver(offset, two)
  }

  #deliver(offset: number, envelope: string): void {
    const delivery = decodeEnvelope(undefined, Buffer.from(envelope, 'base64'))
    const isBound = (key: string) =>
      [...this.#bound].some(([pattern, since]) => offset > since && matches(pattern, key))
    if (delivery === undefined) this.#events.malformed('a line that is no message', '#')
    else if (isBound(delivery.key)) this.#events.deliver(delivery)
  }

  async #fingerprintAt(offset: number): Promise<number> {
    const file = await open(this.#path)
    let number = 0
    for await (const line of file.readLines({ encoding: 'latin1' }))
      if (++number === offset) return fingerprintOfText(line)
    return 0
  }
}
