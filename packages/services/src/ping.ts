import { connect } from 'node:net'
import { ServiceError } from './service-error.js'

const PING_TIMEOUT_MS = 2_000

/**
 * Sends bytes to a port of loopback and waits for the answer.
 * @returns the bytes received when `isAnswer` accepted them
 * @throws {ServiceError} when nothing listens, the peer hangs up, or no answer comes within 2 s.
 */
export function ask(port: number, question: string, isAnswer: (received: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(question, 'latin1'))
    const fail = (reason: string, cause?: unknown) => {
      socket.destroy()
      reject(new ServiceError(`port ${port} ${reason}`, cause))
    }
    socket.setEncoding('latin1').setTimeout(PING_TIMEOUT_MS, () => fail('gives no answer'))
    socket.on('error', (cause) => fail('does not answer', cause))
    socket.on('close', () => fail(`hung up after: ${received.slice(0, 200)}`))
    socket.on('data', (text: string) => {
      received += text
      if (!isAnswer(received)) return
      resolve(received)
      socket.destroy()
    })
  })
}

/** AMQP 0-9-1 §2.2.4: the header is answered by `connection.start`, a method frame with class 10 and method 10. */
export async function pingRabbitmq(port: number): Promise<void> {
  const isStart = (received: string) => received.length >= 11 && received.slice(7, 11) === '\0\x0a\0\x0a'
  await ask(port, 'AMQP\0\0\x09\x01', isStart)
}

/** Resolves when a Redis answers `PING`, which it does once its data is loaded. */
export async function pingRedis(port: number): Promise<void> {
  await ask(port, 'PING\r\n', (received) => received.startsWith('+PONG\r\n'))
}

/**
 * Resolves when a PostgreSQL asks for the authentication of the user `postgres`: one that starts or ends answers with an
 * error instead. The message is a length, protocol 3.0, and parameters.
 */
export async function pingPostgres(port: number): Promise<void> {
  const parameters = 'user\0postgres\0\0'
  await ask(port, `\0\0\0${String.fromCharCode(8 + parameters.length)}\0\x03\0\0${parameters}`, (received) =>
    received.startsWith('R'),
  )
}

/** Resolves when a NATS server sends its `INFO`: it then accepts clients, with any authentication. */
export async function pingNats(port: number): Promise<void> {
  await ask(port, '', (received) => received.startsWith('INFO ') && received.endsWith('\r\n'))
}
