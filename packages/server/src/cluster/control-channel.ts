import type { Broker, BrokerStatus, InboundMessage } from '../ports/broker.js'
import { type ControlMessage, decodeControlMessage, encodeControlMessage } from './control-message.js'

/** The key for messages to all nodes. For messages to one node, its name is appended. */
export const CONTROL_KEY = '$webmq.control'

/** What a {@link ControlChannel} works with. */
export interface ControlChannelContext {
  /** Name of this node, new with every start. */
  readonly node: string
  readonly broker: Pick<Broker, 'bind' | 'publish'>
  /** Called with every message of another node. MUST NOT call the broker from within this call. */
  readonly onMessage: (message: ControlMessage) => void
  /** Messages of other nodes arrive from now on; called again after the broker was lost. */
  readonly onOpen: () => void
  readonly onError: (error: unknown, text: string) => void
}

/** Delay after a failed bind. */
const RETRY_MS = 1_000

/** Sends and takes the small messages between nodes, under reserved keys. Malformed ones are counted and ignored. */
export class ControlChannel {
  readonly #context: ControlChannelContext
  #state: 'idle' | 'binding' | 'open' | 'stopped' = 'idle'
  #status: BrokerStatus = 'down'
  #retry: NodeJS.Timeout | undefined
  #malformedCount = 0

  constructor(context: ControlChannelContext) {
    this.#context = context
  }

  /** Messages of other nodes that could not be read. */
  get malformedCount(): number {
    return this.#malformedCount
  }

  /** Begins to take part. */
  open(): void {
    if (this.#state !== 'idle') return
    this.#state = 'binding'
    void this.#bind()
  }

  /** Ends taking part. */
  close(): void {
    this.#state = 'stopped'
    clearTimeout(this.#retry)
  }

  /** The broker's status changed. */
  status(status: BrokerStatus): void {
    const isBack = status === 'up' && this.#status !== 'up'
    this.#status = status
    // Later: the sink of a broker must not call it.
    if (isBack && this.#state === 'open') setImmediate(() => this.#opened())
  }

  /** Messages of other nodes may be missing. */
  gap(): void {
    if (this.#state === 'open') setImmediate(() => this.#opened())
  }

  /**
   * Sends a message to all other nodes, or to one. Resolves once the broker has accepted it.
   * @throws {WebMQError} `E_BROKER_UNAVAILABLE`
   */
  async send(message: ControlMessage, to?: string): Promise<void> {
    if (this.#state === 'idle' || this.#state === 'stopped') return
    const key = to === undefined ? CONTROL_KEY : `${CONTROL_KEY}.${to}`
    const payload = Buffer.from(encodeControlMessage(message))
    await this.#context.broker.publish({ key, payload, isBinary: false })
  }

  /** As {@link send}, for messages whose loss other nodes notice by themselves. */
  tell(message: ControlMessage, to?: string): void {
    this.send(message, to).catch((error: unknown) => {
      this.#context.onError(error, `the control message ${message.kind} could not be published`)
    })
  }

  /** Takes a message on a reserved key; returns whether it is one of these. Never calls the broker from within this call. */
  receive({ key, payload }: Pick<InboundMessage, 'key' | 'payload'>): boolean {
    if (this.#state !== 'open' && this.#state !== 'binding') return false
    if (key !== CONTROL_KEY && key !== `${CONTROL_KEY}.${this.#context.node}`) return false
    const message = decodeControlMessage(payload)
    if (message === undefined) this.#malformedCount++
    else if (message !== 'unknown' && message.node !== this.#context.node) this.#context.onMessage(message)
    return true
  }

  async #bind(): Promise<void> {
    const { broker, node, onError } = this.#context
    const keys = [CONTROL_KEY, `${CONTROL_KEY}.${node}`]
    let boundCount = 0
    while (this.#state === 'binding' && boundCount < keys.length) {
      try {
        await broker.bind(keys[boundCount] as string)
        boundCount++
      } catch (error) {
        onError(error, 'control messages could not be bound; it is tried again')
        await new Promise<void>((resolve) => {
          this.#retry = setTimeout(resolve, RETRY_MS).unref()
        })
      }
    }
    if (this.#state !== 'binding') return
    this.#state = 'open'
    this.#opened()
  }

  #opened(): void {
    if (this.#state === 'open') this.#context.onOpen()
  }
}
