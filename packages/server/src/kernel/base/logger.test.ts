import { describe, expect, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { createLogger, hideTokens, type LoggerOptions } from './logger.js'

const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl'

function createRecorder(options: LoggerOptions = {}) {
  const lines: string[] = []
  const logger = createLogger({ ...options, destination: { write: (line) => lines.push(line) } })
  return { logger, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> }
}

describe('createLogger', () => {
  it('writes one JSON object per line where nobody looks', () => {
    const { logger, lines, last } = createRecorder()
    logger.info({ connections: 3 }, 'listening')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^\{.*\}\n$/)
    expect(last()).toMatchObject({ level: 'info', connections: 3, msg: 'listening' })
    expect(Date.parse(String(last().time))).not.toBeNaN()
  })

  it('leaves out what is less serious than its level', () => {
    const { logger, lines } = createRecorder({ level: 'warn' })
    logger.info('not this')
    logger.warn('this')
    expect(lines).toHaveLength(1)
  })

  it('writes nothing when silent', () => {
    const { logger, lines } = createRecorder({ level: 'silent' })
    logger.fatal('not this')
    expect(lines).toEqual([])
  })

  it('adds the fields of a child to its lines', () => {
    const { logger, last } = createRecorder()
    logger.child({ connection: 7 }).child({ user: 'alice' }).warn('slow')
    expect(last()).toMatchObject({ connection: 7, user: 'alice', msg: 'slow' })
  })

  it('writes an error with its code, its cause and its stack', () => {
    const { logger, last } = createRecorder()
    logger.error({ err: new WebMQError('E_BROKER_UNAVAILABLE', { cause: new Error('refused') }) }, 'publish failed')
    expect(last().err).toMatchObject({ code: 'E_BROKER_UNAVAILABLE', message: expect.stringContaining('refused') })
    expect(JSON.stringify(last().err)).toContain('logger.test')
  })

  it('is readable, and without colours where there is no terminal, when asked to be pretty', () => {
    const { logger, lines } = createRecorder({ format: 'pretty' })
    logger.warn({ user: 'alice' }, 'slow consumer')
    expect(lines.join('')).toMatch(/^\d\d:\d\d:\d\d\.\d{3} WARN slow consumer \{"user":"alice"\}\n$/)
  })

  it('writes the stack of an error on lines of its own when it is pretty', () => {
    const { logger, lines } = createRecorder({ format: 'pretty' })
    logger.error({ err: new WebMQError('E_BROKER_UNAVAILABLE', { cause: new Error('refused') }), attempt: 2 })
    const [first, ...stack] = lines.join('').trimEnd().split('\n')
    expect(first).toMatch(/^\S+ ERROR broker is unreachable.* \{"attempt":2,"err":\{"code":"E_BROKER_UNAVAILABLE"/)
    expect(stack.length).toBeGreaterThan(2)
    expect(stack.every((line) => line.startsWith('    '))).toBe(true)
    expect(stack.join('\n')).toContain('refused')
  })

  it('colours pretty lines when asked to', () => {
    const { logger, lines } = createRecorder({ format: 'pretty', color: true })
    logger.warn('slow consumer')
    expect(lines.join('')).toContain('\u001b[33mWARN\u001b[0m slow consumer')
  })

  // A message with a token before a quote was logged as broken JSON: the escape of the quote was taken for the token.
  it.each(['json', 'pretty'] as const)('hides a token before a quote without breaking the line (%s)', (format) => {
    const { logger, lines } = createRecorder({ format })
    logger.info({ request: 'authorization="Bearer hunter2"' }, 'says "Bearer hunter2"')
    expect(lines.join('')).not.toContain('hunter2')
    expect(lines.join('')).toContain(format === 'json' ? 'says \\"Bearer [redacted]\\"' : 'says "Bearer [redacted]"')
    if (format === 'json') expect(() => JSON.parse(lines[0] ?? '')).not.toThrow()
  })

  it.each(['json', 'pretty'] as const)('never writes a token (%s)', (format) => {
    const { logger, lines } = createRecorder({ format })
    const headers = {
      authorization: `Bearer ${JWT}`,
      cookie: 'session=hunter2',
      'sec-websocket-protocol': 'webmq.v1, webmq.bearer.hunter2',
    }
    logger.info({ token: 'hunter2', headers, jwt: { secret: 'hunter2' } }, 'upgrade')
    logger.info({ request: { headers } }, `GET /ws?access_token=hunter2&x=1 by ${JWT}`)
    logger.error({ err: new Error(`bad token ${JWT}`) }, 'Authorization: Bearer hunter2')
    logger.child({ token: 'hunter2' }).info('webmq.bearer.hunter2')
    const text = lines.join('')
    expect(text).not.toMatch(/hunter2|eyJ/)
    expect(text).toContain('[redacted]')
    expect(text).toContain('x=1')
  })
})

describe('hideTokens', () => {
  it('leaves ordinary text alone', () => {
    const text = 'listen chat.eyJ.x, token verified, bearer tokens are wanted? path=/token'
    expect(hideTokens('chat.*.message a.b.c /ws?room=1')).toBe('chat.*.message a.b.c /ws?room=1')
    expect(hideTokens(text)).toContain('token verified')
  })

  it('takes time in proportion to a text that was made to be slow', () => {
    const startedAtMs = performance.now()
    hideTokens('eyJ'.repeat(100_000))
    hideTokens('eyJ-'.repeat(100_000))
    hideTokens('bearer '.repeat(100_000))
    expect(performance.now() - startedAtMs).toBeLessThan(10_000)
  })
})
