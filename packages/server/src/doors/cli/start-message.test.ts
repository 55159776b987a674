import { describe, expect, it } from 'vitest'
import { resolveOptions } from '../options/options.js'
import { describeStart } from './start-message.js'
import type { Terminal } from './terminal.js'

const URL_TEXT = 'ws://127.0.0.1:8080/ws'

/** A pattern that matches a text and nothing else. */
const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** Only what the message looks at. */
function terminalWith(isTTY: boolean, env: NodeJS.ProcessEnv = {}): Terminal {
  const stream = { isTTY } as NodeJS.WriteStream
  return { env, stdin: process.stdin, stdout: stream, stderr: stream }
}

describe('describeStart', () => {
  it('is a line that ends with the address, and one for the demo page, where a program reads it', () => {
    const line = /^WebMQ \d+\.\d+\.\d+\S* listens on ws:\/\/127\.0\.0\.1:8080\/ws\n/
    const plain = describeStart(URL_TEXT, resolveOptions({ insecure: true }), terminalWith(false))
    expect(plain).toMatch(line)
    expect(plain.replace(line, '')).toBe('')
    const demo = describeStart(URL_TEXT, resolveOptions({ demo: true, insecure: true }), terminalWith(false))
    expect(demo.replace(line, '')).toBe('Demo page: http://127.0.0.1:8080/\n')
  })

  it('gives the command that asks a Unix socket', () => {
    const options = resolveOptions({ host: 'unix:/run/webmq.sock', demo: true, insecure: true })
    const text = describeStart('ws+unix:/run/webmq.sock:/ws', options, terminalWith(true, { NO_COLOR: '1' }))
    expect(text).toContain('ws+unix:/run/webmq.sock:/ws\n')
    expect(text).toContain('curl --unix-socket /run/webmq.sock http://localhost/health\n')
    expect(text).not.toContain('Demo')
  })

  it('tells people where the demo page is, and who may come in', () => {
    const text = describeStart(URL_TEXT, resolveOptions({ demo: true }), terminalWith(true, { NO_COLOR: '1' }))
    expect(text).toContain('http://127.0.0.1:8080/\n')
    expect(text).toContain('through a proxy or tunnel on it that does not say so, may listen and publish anything')
    expect(text).not.toContain('\u001b')
  })

  it('says to programs, too, that a proxy on this machine lets in whoever reaches it', () => {
    const text = describeStart(URL_TEXT, resolveOptions(), terminalWith(false))
    expect(text).toContain(
      '\nAccess: no tokens: everyone on this machine, or who comes through a proxy or tunnel on it that does not say so,',
    )
    expect(
      describeStart(URL_TEXT, resolveOptions({ jwt: { secret: 'x'.repeat(32) } }), terminalWith(false)),
    ).not.toContain('Access')
  })

  it('says which broker it is, without its password', () => {
    const options = resolveOptions({ broker: 'amqp://user:sesame@host:5672', insecure: true })
    const broker = 'rabbitmq, amqp://user:***@host:5672\n'
    expect(describeStart(URL_TEXT, options, terminalWith(false))).toMatch(
      new RegExp(`/ws\nBroker: ${literal(broker)}$`),
    )
    expect(describeStart(URL_TEXT, options, terminalWith(true, { NO_COLOR: '1' }))).toContain(broker)
    expect(describeStart(URL_TEXT, resolveOptions(), terminalWith(true))).toContain('memory (one node only)')
  })

  it('does not speak of a demo page that is not served', () => {
    expect(describeStart(URL_TEXT, resolveOptions(), terminalWith(true))).not.toContain('Demo')
  })

  it('says when the whole network may come in, and when tokens are wanted', () => {
    const open = resolveOptions({ host: '0.0.0.0', insecure: true, origins: ['*'] })
    expect(describeStart(URL_TEXT, open, terminalWith(true))).toMatch(
      /everyone who can reach 0\.0\.0\.0.*of any origin/s,
    )
    const closed = resolveOptions({ jwt: { secret: 'x'.repeat(32) } })
    expect(describeStart(URL_TEXT, closed, terminalWith(true))).toContain('with a token;')
  })

  it('is coloured on a terminal, unless NO_COLOR is set or the terminal cannot', () => {
    expect(describeStart(URL_TEXT, resolveOptions(), terminalWith(true))).toContain('\u001b[')
    expect(describeStart(URL_TEXT, resolveOptions(), terminalWith(true, { TERM: 'dumb' }))).not.toContain('\u001b[')
  })

  it('has secure addresses beside a secure one', () => {
    const text = describeStart('wss://example.com:8443/ws', resolveOptions(), terminalWith(true, { NO_COLOR: '1' }))
    expect(text).toContain('https://example.com:8443/health')
  })
})
