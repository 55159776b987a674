import type { AddressInfo } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import type { Played } from './case.js'

const WELCOME = '"protocol":"webmq.v1","auth":"none","session":"s","heartbeatMs":0,"limits":{}'

/** A server that is played by a case: it greets, answers and says what the case has, however wrong. */
export class PlayedServer {
  readonly #server: WebSocketServer
  readonly #answers: NonNullable<Played['answers']>
  readonly #heard = new Map<string, number>()
  #welcome: string

  private constructor({ answers = {}, welcome = '' }: Played) {
    this.#answers = answers
    this.#welcome = welcome
    this.#server = new WebSocketServer({ host: '127.0.0.1', port: 0, handleProtocols: () => 'webmq.v1' })
    this.#server.on('connection', (socket) => this.#accept(socket))
  }

  static async start(played: Played): Promise<PlayedServer> {
    const server = new PlayedServer(played)
    await new Promise<void>((resolve, reject) => server.#server.once('listening', resolve).once('error', reject))
    return server
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/ws`
  }

  /** Greets in this way from now on. */
  welcome(members: string): void {
    this.#welcome = members
  }

  say(text: string): void {
    for (const socket of this.#server.clients) socket.send(spelled(text))
  }

  heardCount(verb: string): number {
    return this.#heard.get(verb) ?? 0
  }

  /** Any fault ends all connections. */
  fault(): void {
    for (const socket of this.#server.clients) socket.terminate()
  }

  async stop(): Promise<void> {
    this.fault()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(socket: WebSocket): void {
    // The client may break it at any time.
    socket.on('error', () => socket.terminate())
    // The last of two members with a name counts.
    socket.send(spelled(`welcome\n{${[WELCOME, this.#welcome].filter(Boolean).join(',')}}`))
    socket.on('message', (data) => {
      const [verb = '', id = ''] = String(data).split('\n', 1)[0]?.split(' ') ?? []
      this.#heard.set(verb, this.heardCount(verb) + 1)
      const usual = verb === 'ping' ? 'pong' : verb === 'auth' ? 'ok $id\n{}' : 'ok $id'
      for (const text of this.#answers[verb] ?? [usual]) socket.send(spelled(text).replaceAll('$id', id))
    })
  }
}

function spelled(text: string): string {
  return text.replace(/\{(deep|digits):(\d+)\}/g, (_, what, count) =>
    what === 'deep' ? '['.repeat(count) + ']'.repeat(count) : '9'.repeat(count),
  )
}
