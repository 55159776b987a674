import { type ConsumerConfig, type ConsumerContext, ModelConsumer, NS_PER_MS } from './consumer.js'
import { NO_BYTES, statusHeaders } from './protocol.js'

/** What `CONSUMER.MSG.NEXT` asks for. */
export interface PullRequest {
  readonly batch?: number
  /** Nanoseconds, as in the next one. */
  readonly expires?: number
  readonly idle_heartbeat?: number
}

interface Waiting {
  readonly reply: string
  leftCount: number
  readonly timers: readonly NodeJS.Timeout[]
}

/** Sends what it is asked for. Its state is in memory: a server that was restarted has sent nothing. */
export class PullConsumer extends ModelConsumer {
  readonly #waiting: Waiting[] = []

  constructor(name: string, config: ConsumerConfig, context: ConsumerContext) {
    super(name, config, context)
    if (config.durable_name === undefined || config.mem_storage !== true)
      throw new Error('the model is only asked by durable consumers in memory')
  }

  wake(): void {
    if (this.context.isSilent()) return
    for (let request = this.#waiting[0]; request !== undefined; request = this.#waiting[0]) {
      const message = this.take()
      if (message === undefined) return
      this.context.core.deliver(request.reply, message)
      if (--request.leftCount === 0) this.#end(request)
    }
  }

  stop(): void {
    while (this.#waiting[0] !== undefined) this.#end(this.#waiting[0])
  }

  /** Somebody has deleted it. */
  delete(): void {
    for (const { reply } of this.#waiting) this.#tell(reply, '409 Consumer Deleted')
    this.stop()
  }

  request(reply: string, { batch = 1, expires, idle_heartbeat }: PullRequest): void {
    if (expires === undefined) throw new Error('the model waits for messages only for a time')
    const timers: NodeJS.Timeout[] = []
    const request: Waiting = { reply, leftCount: batch, timers }
    const expired = () => {
      this.#tell(reply, '408 Request Timeout', { 'Nats-Pending-Messages': request.leftCount, 'Nats-Pending-Bytes': 0 })
      this.#end(request)
    }
    timers.push(setTimeout(expired, expires / NS_PER_MS))
    if (idle_heartbeat !== undefined) timers.push(setInterval(() => this.#beat(reply), idle_heartbeat / NS_PER_MS))
    this.#waiting.push(request)
    this.wake()
  }

  #beat(reply: string): void {
    const fields = { 'Nats-Last-Consumer': this.sentCount, 'Nats-Last-Stream': this.nextSequence - 1 }
    if (!this.context.isSilent()) this.#tell(reply, '100 Idle Heartbeat', fields)
  }

  #end(request: Waiting): void {
    for (const timer of request.timers) clearTimeout(timer)
    this.#waiting.splice(this.#waiting.indexOf(request), 1)
  }

  #tell(to: string, status: string, fields: Record<string, number> = {}): void {
    const headers = statusHeaders(status, fields)
    this.context.core.deliver(to, { subject: to, reply: '', headers, payload: NO_BYTES })
  }
}
