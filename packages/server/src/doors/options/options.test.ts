import { describe, expect, expectTypeOf, it } from 'vitest'
import { WebMQError } from 'webmq-client/protocol'
import { historyOf } from 'webmq-conformance'
import { MemoryBroker } from '../../adapters/brokers/memory/broker.js'
import type { JwtOptions } from '../../kernel/identity/index.js'
import type { Broker } from '../../kernel/ports/broker.js'
import { resolveOptions } from './options.js'
import { warningsOf } from './rules.js'
import {
  type MeshOptions,
  type OutboxOptions,
  type ResolvedOptions,
  type ServerOptions,
  type TlsFiles,
  tlsFilesOf,
} from './server-options.js'
import { environmentNameOf, type OptionSpec } from './spec.js'
import { OPTIONS, type OptionName } from './table.js'
import type { WebhookOptions } from './webhook.js'

const SPECS: readonly OptionSpec[] = OPTIONS
const SECRET = 'a secret that is long enough for HS256'

function errorOf(action: () => unknown): WebMQError {
  try {
    action()
  } catch (error) {
    if (error instanceof WebMQError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

/** Options that hold one value by its name in the table. */
function optionsWith(name: string, value: unknown): ServerOptions {
  const [group = '', member] = name.split('.')
  return (member === undefined ? { [group]: value } : { [group]: { [member]: value } }) as ServerOptions
}

describe('the table of options', () => {
  it('has a row for every option, and no other', () => {
    type Nested<Group extends string, Members> = `${Group}.${Extract<keyof Members, string>}`
    type Declared =
      | Exclude<keyof ServerOptions, 'jwt' | 'tls' | 'mesh' | 'outbox' | 'webhook' | 'logger'>
      | Nested<'jwt', JwtOptions>
      | Nested<'tls', TlsFiles>
      | Nested<'mesh', MeshOptions>
      | Nested<'outbox', OutboxOptions>
      | Nested<'webhook', WebhookOptions>
    expectTypeOf<OptionName>().toEqualTypeOf<Declared>()
  })

  it('has no name, flag or variable twice', () => {
    for (const values of [SPECS.map(({ name }) => name), SPECS.map(({ flag }) => flag), SPECS.map(environmentNameOf)]) {
      expect(new Set(values).size).toBe(SPECS.length)
    }
  })

  it.each(SPECS.map((spec) => [spec.name, spec] as const))('says what %s does in whole sentences', (_name, spec) => {
    for (const text of [spec.help, spec.detail ?? 'Yes.']) expect(text).toMatch(/^[A-Z`].*\.$/s)
  })
})

describe('resolveOptions', () => {
  it('serves this machine only, anonymously, without being told anything', () => {
    expect(resolveOptions()).toMatchObject({
      host: '127.0.0.1',
      port: 8080,
      path: '/ws',
      transport: 'auto',
      broker: 'memory',
      brokerNamespace: 'webmq',
      brokerTimeoutMs: 5000,
      brokerStartTimeoutMs: 30_000,
      brokerHeartbeatMs: 5000,
      brokerMaxPendingBytes: 64 * 1024 * 1024,
      insecure: false,
      origins: [],
      maxPayloadBytes: 262_144,
      maxOutboxBytes: 1_048_576,
      compression: false,
      compressionThresholdBytes: 1_024,
      drainDelayMs: 0,
      drainPerSecond: 100,
      drainTimeoutMs: 25_000,
    })
    expect(resolveOptions()).not.toHaveProperty('jwt')
    expect(resolveOptions().threads).toBeGreaterThanOrEqual(1)
  })

  it('takes a value that is undefined for one that is not given', () => {
    expect(resolveOptions({ port: undefined, jwt: undefined }).port).toBe(8080)
  })

  it('fills in what a group of options leaves out', () => {
    expect(resolveOptions({ jwt: { secret: SECRET } }).jwt).toEqual({
      secret: [SECRET],
      clockToleranceS: 5,
      requireExp: false,
      algorithms: [],
    })
  })

  it('hands a logger on as it is', () => {
    const logger = { child: () => logger } as unknown as NonNullable<ServerOptions['logger']>
    expect(resolveOptions({ logger }).logger).toBe(logger)
  })

  it('cannot be changed afterwards', () => {
    const options = resolveOptions() as { -readonly [Name in keyof ResolvedOptions]: ResolvedOptions[Name] }
    expect(() => {
      options.port = 1
    }).toThrow(TypeError)
  })

  describe.each(SPECS.filter((spec) => spec.type === 'integer').map((spec) => [spec.name, spec] as const))(
    '%s',
    (name, spec) => {
      it.each([
        spec.range[0] - 1,
        spec.range[1] + 1,
        spec.range[0] + 0.5,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        '1',
        null,
        true,
      ])('refuses %s', (value) => {
        const error = errorOf(() => resolveOptions(optionsWith(name, value)))
        expect(error.code).toBe('E_OPTION_INVALID')
        expect(error.message).toContain(`: ${name}: `)
        expect(error.message).toContain('a whole number from')
      })
    },
  )

  it.each([
    ['host', ''],
    ['host', 'not a host'],
    ['host', 'http://example.com'],
    ['path', 'ws'],
    ['path', '/ws?x=1'],
    ['transport', 'wss'],
    ['broker', 'kafka://localhost'],
    ['origins', 'https://example.com'],
    ['origins', ['example.com']],
    ['origins', ['https://example.com/']],
    ['origins', [1]],
    ['insecure', 'yes'],
    ['demo', 1],
    ['logLevel', 'verbose'],
    ['tls', 'cert.pem'],
    ['jwt', null],
    ['jwt', []],
    ['mesh', 'a:1'],
    ['mesh.listen', 'a:b'],
    ['mesh.secret', ''],
    ['urgent', ['alarms.#', 'a*']],
    ['urgent', Array.from({ length: 101 }, (_, index) => `alarms.${index}`)],
    ['apiKeys', ['a key with spaces in it']],
    ['apiKeys', ['schlüssel-von-16-bytes']],
    ['jwt.secret', ''],
    ['jwt.secret', 12],
    ['jwt.publicKey', 'key.pem'],
    ['jwt.jwksUrl', '/jwks.json'],
    ['jwt.jwksUrl', 'file:///etc/passwd'],
    ['jwt.algorithms', ['none']],
  ])('refuses %s: %j and names it', (name, value) => {
    const error = errorOf(() => resolveOptions(optionsWith(name, value)))
    expect(error.code).toBe('E_OPTION_INVALID')
    expect(error.message).toContain(`: ${name}`)
  })

  it('refuses names that it does not know, and says which may have been meant', () => {
    expect(errorOf(() => resolveOptions({ prot: 1 } as ServerOptions)).message).toMatch(
      /prot: unknown option, did you mean port\?$/,
    )
    const nested = errorOf(() => resolveOptions({ jwt: { jwks: 'x' } } as ServerOptions))
    expect(nested.message).toMatch(/jwt\.jwks: unknown option/)
  })

  it('repeats the value that is wrong, unless it is a secret', () => {
    expect(errorOf(() => resolveOptions({ port: 99_999 })).message).toContain('99999')
    const pem = '-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----'
    const error = errorOf(() => resolveOptions({ jwt: { secret: pem } }))
    expect(error.message).toContain('jwt.publicKey')
    expect(error.message).not.toContain('MIIB')
  })

  it('wants an outbox that holds at least one message of the largest size', () => {
    expect(errorOf(() => resolveOptions({ maxPayloadBytes: 1_048_576 })).message).toContain('maxPayloadBytes + 4096')
    expect(resolveOptions({ maxPayloadBytes: 1_048_576 - 4096 }).maxOutboxBytes).toBe(1_048_576)
  })

  it('takes the files of one certificate for TLS, or of several', () => {
    const one = resolveOptions({ tls: { certFile: 'a,b.pem', keyFile: 'key.pem' } }).tls
    expect(one && tlsFilesOf(one)).toEqual([{ certFile: 'a,b.pem', keyFile: 'key.pem' }])
    const two = resolveOptions({ tls: { certFile: ['a.pem', 'b.pem'], keyFile: ['a.key', 'b.key'] } }).tls
    expect(two && tlsFilesOf(two)).toEqual([
      { certFile: 'a.pem', keyFile: 'a.key' },
      { certFile: 'b.pem', keyFile: 'b.key' },
    ])
  })

  it('wants a key for every certificate: an empty group most often is a variable that got lost', () => {
    for (const tls of [{}, { certFile: 'cert.pem' }, { keyFile: 'key.pem' }, { certFile: [], keyFile: [] }]) {
      expect(errorOf(() => resolveOptions({ tls: tls as TlsFiles })).message).toContain('needs both tls.certFile')
    }
    const tls = { certFile: ['a.pem', 'b.pem'], keyFile: 'key.pem' }
    expect(errorOf(() => resolveOptions({ tls })).message).toContain('got 2 tls.certFile')
    expect(errorOf(() => resolveOptions({ tls: { ...tls, keyFile: '' } })).message).toContain('the name of a file')
  })

  it('wants a key for tokens: an empty group or list most often is a variable that got lost', () => {
    for (const jwt of [{}, { secret: undefined }, { issuer: 'me' }]) {
      expect(errorOf(() => resolveOptions({ jwt })).message).toContain('needs a jwt.secret')
    }
    for (const name of ['secret', 'publicKey']) {
      for (const list of [[], Array(9).fill(SECRET)]) {
        const error = errorOf(() => resolveOptions({ jwt: { jwksUrl: 'https://example.com/', [name]: list } }))
        expect(error.message).toMatch(new RegExp(`jwt\\.${name}: .*a list of 1 to 8 texts`))
        expect(error.message).not.toContain(SECRET)
      }
    }
  })

  it('takes several keys of every kind at once, so that they can rotate', () => {
    const jwt = { secret: [SECRET, `${SECRET} 2`], jwksUrl: 'https://example.com/' }
    expect(resolveOptions({ jwt }).jwt).toMatchObject(jwt)
    const error = errorOf(() => resolveOptions({ jwt: { secret: [SECRET, 'short'] } }))
    expect(error.message).toContain('jwt.secret: not a secret of at least 16 bytes')
  })

  it('refuses algorithms that do not go with the key', () => {
    const error = errorOf(() => resolveOptions({ jwt: { secret: SECRET, algorithms: ['HS256', 'RS256'] } }))
    expect(error.message).toContain('RS256 fits no key')
    const keySet = errorOf(() => resolveOptions({ jwt: { jwksUrl: 'https://example.com/', algorithms: ['HS256'] } }))
    expect(keySet.message).toContain('HS256 fits no key')
  })

  it.each(['0.0.0.0', '::', '192.168.1.5', 'example.com'])(
    'does not open %s to everyone without being told to',
    (host) => {
      const error = errorOf(() => resolveOptions({ host }))
      expect(error.code).toBe('E_INSECURE')
      expect(error.message).toContain(host)
      expect(resolveOptions({ host, insecure: true }).host).toBe(host)
      expect(resolveOptions({ host, jwt: { secret: SECRET } }).host).toBe(host)
    },
  )

  it.each(['127.0.0.1', '127.1.2.3', '::1', 'localhost'])('serves %s anonymously', (host) => {
    expect(resolveOptions({ host }).host).toBe(host)
  })

  it('does not fetch keys over a network that could change them', () => {
    const jwksUrl = 'http://keys.example.com/jwks.json'
    expect(errorOf(() => resolveOptions({ jwt: { jwksUrl } })).code).toBe('E_INSECURE')
    expect(resolveOptions({ jwt: { jwksUrl }, insecure: true }).jwt?.jwksUrl).toBe(jwksUrl)
    expect(resolveOptions({ jwt: { jwksUrl: 'http://[::1]:9/' } }).jwt).toBeDefined()
  })
})

describe('the option broker', () => {
  it('takes a broker of the own, as it is', () => {
    const broker = new MemoryBroker({ ...historyOf(), dedupeWindowMs: 0, dedupeMaxIds: 0 })
    expect(resolveOptions({ broker }).broker).toBe(broker)
  })

  it('says what an object lacks that is none', () => {
    const broker = { name: 'mine', capabilities: { history: true }, publish: () => undefined } as unknown as Broker
    const { code, message } = errorOf(() => resolveOptions({ broker }))
    expect(code).toBe('E_OPTION_INVALID')
    expect(message).toContain(
      'it lacks capabilities.retained, capabilities.ordered, capabilities.sharedLog, capabilities.confirms, capabilities.queueGroups, ' +
        'capabilities.durable, capabilities.manyNodes, start, bind, unbind, read, position, stats, stop',
    )
    for (const nothing of [null, ['amqp://user:sesame@host']] as unknown as Broker[]) {
      expect(errorOf(() => resolveOptions({ broker: nothing })).message).not.toContain('sesame')
    }
  })

  it.each(['ampq://user:sesame@host', 'amqp:/user:sesame@host', 'user:sesame@host'])(
    'does not repeat the password of %s',
    (broker) => {
      const { message } = errorOf(() => resolveOptions({ broker }))
      expect(message).toContain('host')
      expect(message).not.toContain('sesame')
    },
  )
})

describe('the options of a mesh', () => {
  const broker = 'mesh://10.0.0.1:7400,10.0.0.2'

  it('wants a secret as soon as one node is beyond this machine', () => {
    expect(resolveOptions({ broker: 'mesh://127.0.0.1:7401,[::1]:7402,localhost' }).mesh).toBeUndefined()
    for (const options of [{ broker }, { broker: 'mesh://localhost', mesh: { listen: '0.0.0.0:7400' } }]) {
      const error = errorOf(() => resolveOptions(options))
      expect(error.code).toBe('E_INSECURE')
      expect(error.message).toContain('--mesh-secret')
      expect(resolveOptions({ ...options, insecure: true }).broker).toBe(options.broker)
      expect(resolveOptions({ ...options, mesh: { ...options.mesh, secret: SECRET } }).mesh?.secret).toBe(SECRET)
    }
  })

  it('is of no interest to another broker', () => {
    expect(resolveOptions({ broker: 'nats://10.0.0.1', mesh: { listen: '0.0.0.0:7400' } }).broker).toBe(
      'nats://10.0.0.1',
    )
  })

  it.each(['mesh://', 'mesh://:7400', 'mesh://a:0', 'mesh://a,,b'])('refuses %s', (address) => {
    expect(errorOf(() => resolveOptions({ broker: address })).code).toBe('E_OPTION_INVALID')
  })

  it('never repeats a secret', () => {
    const error = errorOf(() => resolveOptions({ mesh: { secret: ['hunter2'] } } as unknown as ServerOptions))
    expect(error.message).toContain('mesh.secret')
    expect(error.message).not.toContain('hunter2')
  })
})

describe('warningsOf', () => {
  it('tells of options that do nothing, and of times without their unit', () => {
    expect(warningsOf(resolveOptions({ mesh: { listen: '127.0.0.1:7400' } }))).toEqual([
      expect.stringContaining('--broker mesh://'),
    ])
    for (const name of ['drainTimeoutMs', 'drainDelayMs', 'pingIntervalMs'])
      expect(warningsOf(resolveOptions({ [name]: 50 }))).toEqual([
        expect.stringMatching(`^${name} .*50s are 50 seconds`),
      ])
    expect(warningsOf(resolveOptions({ drainTimeoutMs: 0 }))).toEqual([])
  })

  it.each(['published', 'occupancy'])('names patterns of a webhook that is not told of them: %s', (name) => {
    const webhook = { url: 'https://a.example', secret: 's'.repeat(32), [name]: ['chat.*'] }
    expect(warningsOf(resolveOptions({ webhook }))).toEqual([expect.stringContaining(`without the event ${name}`)])
    expect(warningsOf(resolveOptions({ webhook: { ...webhook, events: [name] } }))).toEqual([])
  })

  it('has nothing to say of the defaults', () => {
    expect(warningsOf(resolveOptions())).toEqual([])
  })

  it('warns of a secret that can be found by trying', () => {
    expect(warningsOf(resolveOptions({ jwt: { secret: 'x'.repeat(31) } }))).toHaveLength(1)
    expect(warningsOf(resolveOptions({ jwt: { secret: 'x'.repeat(32) } }))).toEqual([])
    expect(
      warningsOf(resolveOptions({ broker: 'mesh://127.0.0.1:7401', mesh: { secret: 'x'.repeat(31) } })),
    ).toHaveLength(1)
    expect(warningsOf(resolveOptions({ broker: 'mesh://127.0.0.1:7401', mesh: { secret: 'x'.repeat(32) } }))).toEqual(
      [],
    )
  })

  it('warns of a server that is open to everyone', () => {
    expect(warningsOf(resolveOptions({ host: '0.0.0.0', insecure: true }))).toHaveLength(1)
  })
})
