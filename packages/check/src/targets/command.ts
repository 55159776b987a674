import { CannotRun } from '../exit-codes.js'
import { LinePublisher, listenByLines } from './lines.js'
import { NODE_COUNT } from './schedule.js'
import type { System } from './system.js'

/**
 * A system that runs already, with a program that speaks for its client: `<command> listen <url> <channel>…` and
 * `<command> publish <url>`.
 * @throws {CannotRun} for addresses that a link cannot stand in front of.
 */
export function commandSystem(command: string, urls: readonly string[]): System {
  const [first] = urls
  if (first === undefined) throw new CannotRun('--target <command> needs --url: the address of the system')
  const secure = urls.find((url) => /^(wss|https):/.test(url))
  if (secure !== undefined) throw new CannotRun(`${secure}: a command is given an address on this machine, without TLS`)
  const withPort = urls.find((url) => new URL(url).port === '')
  if (withPort !== undefined) throw new CannotRun(`${withPort}: name the port`)
  const publishers = new Map<string, LinePublisher>()
  const program = (...args: readonly string[]) => ({ command, args, isShellLine: true })
  return {
    title: command,
    settings: urls.join(', '),
    addresses: Array.from({ length: NODE_COUNT }, (_, index) => urls[index % urls.length] ?? first),
    publish: async (url, message) => {
      const publisher = publishers.get(url) ?? new LinePublisher(program('publish', url))
      publishers.set(url, publisher)
      return await publisher.publish(message)
    },
    listen: (port, channels, heard) => {
      const address = new URL(first)
      address.hostname = '127.0.0.1'
      address.port = String(port)
      return listenByLines(program('listen', address.href, ...channels), heard)
    },
    stop: () => {
      for (const publisher of publishers.values()) publisher.stop()
      publishers.clear()
    },
  }
}
