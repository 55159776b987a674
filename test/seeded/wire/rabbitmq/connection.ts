import type { WireLink, WireSession } from '../broker.js'
import type { RabbitmqModel } from './broker.js'
import { Channel } from './channel.js'
import {
  type Content,
  ContentReader,
  contentFrames,
  FRAME,
  type Frame,
  FrameReader,
  HEARTBEAT,
  methodFrame,
} from './frames.js'
import { decodeMethod, type FieldsOf, type Method, type MethodName } from './methods.js'
import { Refusal } from './refusal.js'

const PROTOCOL_HEADER = Buffer.from('AMQP\0\0\x09\x01', 'latin1')
const FRAME_MAX_BYTES = 131_072
const CHANNEL_MAX = 2_047
const HEARTBEAT_SECONDS = 60
const CAPABILITIES = {
  publisher_confirms: true,
  exchange_exchange_bindings: true,
  'basic.nack': true,
  consumer_cancel_notify: true,
  'connection.blocked': true,
  consumer_priorities: true,
  authentication_failure_close: true,
  per_consumer_qos: true,
  direct_reply_to: true,
}

/** A `basic.publish` whose content is not whole yet. */
interface Publishing {
  readonly method: Method
  readonly content: ContentReader
}

/** One connection: the process that reads its socket. */
export class Connection implements WireSession {
  readonly #broker: RabbitmqModel
  readonly #link: WireLink
  readonly #frames = new FrameReader()
  readonly #channels = new Map<number, Channel>()
  /** Channels that were closed for an error: what comes before the client knows is dropped. */
  readonly #refused = new Set<number>()
  readonly #publishing = new Map<number, Publishing>()
  #state: 'begins' | 'opens' | 'runs' | 'closes' | 'over' = 'begins'
  #frameMaxBytes = FRAME_MAX_BYTES
  #isBlocked = false
  #hasSent = false
  #hasReceived = false
  #silentIntervals = 0
  /** As its client names it. */
  name = ''

  constructor(broker: RabbitmqModel, link: WireLink) {
    this.#broker = broker
    this.#link = link
  }

  receive(bytes: Uint8Array): void {
    this.#hasReceived = true
    this.#frames.push(bytes)
    this.#read()
  }

  closed(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#endChannels()
    this.#broker.forget(this)
    this.#broker.removeQueuesOf(this, false)
  }

  /** Resets it: the broker is killed, or gives it up. */
  reset(): void {
    if (this.#state === 'over') return
    this.closed()
    this.#link.end('reset')
  }

  send<N extends MethodName>(channel: number, name: N, fields: FieldsOf<N>): void {
    this.#write(methodFrame(channel, name, fields))
  }

  sendContent<N extends MethodName>(channel: number, name: N, fields: FieldsOf<N>, content: Content): void {
    this.#write(
      Buffer.concat([methodFrame(channel, name, fields), contentFrames(channel, content, this.#frameMaxBytes)]),
    )
  }

  channelEnded(number: number): void {
    this.#channels.delete(number)
  }

  /** Closes the channel, or the whole connection. */
  refuse(channel: number, cause: Refusal, { classId, methodId } = { classId: 0, methodId: 0 }): void {
    const fields = { code: cause.code, text: cause.message.slice(0, 255), classId, methodId }
    if (!cause.isOfConnection && channel > 0) {
      this.#channels.delete(channel)
      this.#refused.add(channel)
      this.send(channel, 'channel.close', fields)
      return
    }
    // An operator ends one that is not open yet without a word.
    if (this.#state !== 'runs' && cause.code === 320) {
      this.#end()
      return
    }
    this.#endChannels()
    this.#broker.removeQueuesOf(this, true)
    this.#state = 'closes'
    this.send(0, 'connection.close', fields)
  }

  /** The broker is no longer short of memory or disk. */
  unblock(): void {
    if (!this.#isBlocked) return
    this.#isBlocked = false
    this.send(0, 'connection.unblocked', {})
    this.#read()
  }

  #write(bytes: Uint8Array): void {
    if (this.#state === 'over') return
    this.#hasSent = true
    this.#link.send(bytes)
  }

  #read(): void {
    try {
      if (this.#state === 'begins' && !this.#begin()) return
      while (this.#state !== 'over' && !this.#isBlocked) {
        const frame = this.#frames.next()
        if (frame === undefined) return
        this.#take(frame)
      }
    } catch (cause) {
      if (!(cause instanceof Refusal)) throw cause
      this.refuse(0, cause)
    }
  }

  #begin(): boolean {
    const header = this.#frames.take(PROTOCOL_HEADER.length)
    if (header === undefined) return false
    if (!header.equals(PROTOCOL_HEADER)) {
      this.#write(PROTOCOL_HEADER)
      this.#end()
      return false
    }
    this.#state = 'opens'
    this.send(0, 'connection.start', {
      major: 0,
      minor: 9,
      properties: { product: 'RabbitMQ', version: this.#broker.version, platform: 'model', capabilities: CAPABILITIES },
      mechanisms: 'PLAIN',
      locales: 'en_US',
    })
    return true
  }

  #take(frame: Frame): void {
    if (frame.type === FRAME.heartbeat) return
    if (frame.type !== FRAME.method) {
      const publishing = this.#publishing.get(frame.channel)
      if (publishing !== undefined) this.#takeContent(frame, publishing)
      return
    }
    const method = decodeMethod(frame.payload)
    if (method.name === 'unknown') throw new Refusal(540, `the model has no method ${method.id}`)
    if (frame.channel === 0) this.#takeOwn(method)
    else if (this.#state === 'runs') this.#takeForChannel(frame.channel, method)
  }

  #takeOwn(method: Method): void {
    if (this.#state === 'closes' && method.name !== 'connection.close' && method.name !== 'connection.close-ok') return
    switch (method.name) {
      case 'connection.start-ok': {
        this.name = String(method.properties.connection_name ?? '')
        const [, user = '', password] = method.response.split('\0')
        if (this.#broker.users.get(user) !== password) {
          throw new Refusal(403, 'Login was refused using authentication mechanism PLAIN.')
        }
        const limits = { channelMax: CHANNEL_MAX, frameMax: FRAME_MAX_BYTES, heartbeat: HEARTBEAT_SECONDS }
        this.send(0, 'connection.tune', limits)
        break
      }
      case 'connection.tune-ok':
        this.#frameMaxBytes = method.frameMax === 0 ? FRAME_MAX_BYTES : method.frameMax
        if (method.heartbeat > 0) this.#watch(method.heartbeat * 1_000)
        break
      case 'connection.open':
        if (method.vhost !== '/') throw new Refusal(530, `vhost ${method.vhost} not found`)
        this.#state = 'runs'
        this.send(0, 'connection.open-ok', { hosts: '' })
        break
      case 'connection.close':
        this.#endChannels()
        this.#broker.removeQueuesOf(this, true)
        this.send(0, 'connection.close-ok', {})
        this.#end()
        break
      case 'connection.close-ok':
        this.#end()
        break
      default:
        throw new Refusal(503, `unexpected method ${method.name}`)
    }
  }

  #takeForChannel(number: number, method: Method): void {
    if (this.#refused.has(number)) {
      if (method.name === 'channel.close-ok') this.#refused.delete(number)
      else if (method.name === 'channel.close') this.send(number, 'channel.close-ok', {})
      return
    }
    if (method.name === 'channel.open') {
      const channel = new Channel(this.#broker, this, number)
      this.#channels.set(number, channel)
      this.send(number, 'channel.open-ok', { id: '' })
      return
    }
    const channel = this.#channels.get(number)
    if (channel === undefined) throw new Refusal(504, `expected 'channel.open' on channel ${number}`)
    if (method.name === 'basic.publish') this.#publishing.set(number, { method, content: new ContentReader() })
    else channel.inbox.send(() => channel.receive(method, undefined))
  }

  #takeContent(frame: Frame, { method, content }: Publishing): void {
    const whole = content.push(frame)
    if (whole !== undefined) {
      this.#publishing.delete(frame.channel)
      const channel = this.#channels.get(frame.channel)
      channel?.inbox.send(() => channel.receive(method, whole))
    }
    const { alarm } = this.#broker
    // Whoever publishes while it is short is told, and no longer read: also a message that has begun.
    if (alarm === undefined || this.#isBlocked) return
    this.#isBlocked = true
    this.send(0, 'connection.blocked', { reason: alarm })
  }

  /** Sends heartbeats, and gives up a client that is silent for two intervals. */
  #watch(intervalMs: number): void {
    const beat = () => {
      if (this.#state === 'over') return
      if (!this.#hasSent) this.#write(HEARTBEAT)
      this.#hasSent = false
      setTimeout(beat, intervalMs / 2)
    }
    const look = () => {
      if (this.#state === 'over') return
      this.#silentIntervals = this.#hasReceived || this.#isBlocked ? 0 : this.#silentIntervals + 1
      this.#hasReceived = false
      if (this.#silentIntervals >= 2) this.reset()
      else setTimeout(look, intervalMs)
    }
    setTimeout(beat, intervalMs / 2)
    setTimeout(look, intervalMs)
  }

  #endChannels(): void {
    for (const channel of this.#channels.values()) channel.end()
    this.#channels.clear()
  }

  #end(): void {
    this.closed()
    this.#link.end('end')
  }
}
