import { describe, expect, it } from 'vitest'
import { runCli } from './cli.js'
import { commandLine } from './report/report.js'
import { deploymentScenarios, scenarios } from './scenarios/index.js'

/** Runs a command line that is not expected to get as far as starting anything. */
async function usage(...args: string[]) {
  const texts = { stdout: '', stderr: '' }
  const code = await runCli(args, {
    stdout: { write: (text: string) => (texts.stdout += text) },
    stderr: { write: (text: string) => (texts.stderr += text) },
    signal: AbortSignal.abort(new Error('a usage error must be found before anything is started')),
    env: {},
  })
  return { code, ...texts }
}

describe('the command line', () => {
  it.each([
    [['--clients', '0'], /--clients.*whole number above 0/],
    [['--clients', 'many'], /--clients.*whole number above 0/],
    [['--clients', '1e9'], /--clients/],
    [['--publish-rate', '0'], /--publish-rate.*above 0/],
    [['--duration', '-1'], /--duration/],
    [['--warmup', 'Infinity'], /--warmup/],
    [['--seed', '4294967296'], /--seed/],
    [['--message-size', '10'], /--message-size must be \d+ to \d+ bytes/],
    [
      ['--backends', '2', '--broker', 'memory'],
      /--broker memory is embedded in each backend and connects none of them.*--backends 2/,
    ],
    [['--broker', 'kafka'], /--broker.*Allowed are memory, rabbitmq, redis, nats, mesh, and addresses.*amqp:/],
    [['--broker', 'http://localhost'], /--broker.*Allowed are/],
    [['--scenario', 'fanout', '--mode', 'kafka'], /--mode.*Allowed are memory, rabbitmq/],
    [['--scenario', 'fanout', '--mode', 'redis,redis'], /--mode.*names redis twice/],
    [['--scenario', 'fanout', '--mode', 'redis', '--target', 'uws'], /--mode redis is for targets of webmq/],
    [['--scenario', 'brokers', '--sizes', '100'], /--sizes.*above 0/],
    [['--scenario', 'brokers', '--sizes', '1x2x3'], /--sizes.*CLIENTSxBACKENDS/],
    [['--scenario', 'brokers', '--brokers', 'kafka'], /--brokers.*Allowed are memory/],
    [['--scenario', 'brokers', '--brokers', 'memory', '--sizes', '4x2'], /memory is embedded.*sizes like 100x1/],
    [['--scenario', 'brokers', '--assert', 'webmq-native loss=0'], /'webmq-native' is not measured/],
    [['--transport', 'carrier-pigeon'], /Allowed choices are native, ws, uws, auto/],
    [['--scenario', 'nothing'], /Allowed choices are clients/],
    [['--scenario'], /argument missing/],
    [['--assert', 'p98<1'], /no column 'p98'/],
    [['--json', '/no/such/directory/result.json'], /there is no directory/],
    [['--clinets', '5'], /Did you mean --clients/],
    [['stray'], /too many arguments/],
    [['--scenario', 'fanout', '--tls', '--target', 'raw'], /'raw' has no tls; targets that can: webmq-native/],
    [['--scenario', 'storm', '--handshake', 'resumed'], /needs --tls/],
    [['--scenario', 'ping', '--tls'], /unknown option '--tls'/],
    [['--url', 'ftp://a'], /--url.*like wss:/],
    [['--url', 'ws://a', '--scenario', 'fanout'], /Allowed choices are clients, paced, ping, storm/],
    [['--url', 'ws://a', '--key-prefix', 'a.*'], /--key-prefix.*must be a key/],
    [['--url', 'ws://a', '--ca', '/no/such/file'], /--ca .* cannot be read/],
    [['--url', 'ws://a', '--tiers', '501'], /501 connections: the limit is 500.*--no-limits/],
    [['--url', 'ws://a', '--scenario', 'paced', '--rate', '201'], /20,100 deliveries per second: the limit is 20,000/],
    [['--url', 'ws://a', '--scenario', 'ping', '--interval', '50'], /2,000 pings per second/],
    [['--url', 'ws://a', '--scenario', 'storm', '--connect-rate', '101'], /101 connects per second/],
    [['--url', 'ws://a', '--tiers', '400', '--key-pool-size', '1'], /deliveries per second/],
    [['--scenario', 'everyday', '--target', 'uws'], /there is no target 'uws'; there are webmq-native, by-hand/],
  ])('refuses %j with exit code 2', async (args, message) => {
    const { code, stdout, stderr } = await usage(...args)
    expect(stderr).toMatch(message)
    expect(stdout).toBe('')
    expect(code).toBe(2)
  })

  it('explains itself with examples and metrics', async () => {
    const { code, stdout } = await usage('--help')
    expect(code).toBe(0)
    for (const part of ['--key-pool-size', 'node benchmark.js --clients 10 --duration 5', 'p99 (ms)', 'Exit codes']) {
      expect(stdout).toContain(part)
    }
  })

  it('has a line for every scenario, and the flags of a server that runs already', async () => {
    const { stdout } = await usage('--help')
    for (const { name, summary } of [...scenarios, ...deploymentScenarios]) {
      expect(stdout).toMatch(new RegExp(`^  ${name} +${summary.slice(0, 30).replace(/[().]/g, '.')}`, 'm'))
    }
    const deployed = await usage('--url', 'wss://a', '--help')
    expect(deployed.stdout).toMatch(/--token <jwt>/)
    expect(deployed.stdout).not.toMatch(/--broker/)
  })

  it('lifts the limits of a deployment when it is told to', async () => {
    expect((await usage('--url', 'ws://a', '--tiers', '501', '--no-limits')).code).toBe(130)
  })

  it('leaves out targets without TLS that nobody asked for', async () => {
    expect((await usage('--scenario', 'fanout', '--tls')).stdout).toMatch(/Targets: webmq-native, uws\n/)
  })

  it('says that a pool smaller than the listens limits them', async () => {
    expect((await usage('--clients', '10', '--duration', '5')).stderr).toMatch(
      /pool has 5 keys.*all of them instead of to 10/,
    )
    expect((await usage('--clients', '100')).stderr).not.toMatch(/pool/)
  })

  it.each([
    [[], 'Backends: 1 (transport native, broker memory)'],
    [['--broker', 'rabbitmq'], 'Backends: 1 (transport native, broker rabbitmq)'],
    [['--backends', '4'], 'Backends: 4 (transport native, broker rabbitmq)'],
    [['--backends', '4', '--broker', 'mesh'], 'Backends: 4 (transport native, broker mesh)'],
    [['--broker', 'nats://u:secret@127.0.0.1:1'], 'broker nats://***@127.0.0.1:1)'],
  ])('takes %j', async (args, heading) => {
    const { code, stdout } = await usage(...args)
    expect(code).toBe(130)
    expect(stdout).not.toContain('secret')
    expect(stdout).toContain(heading)
  })

  it('writes no passwords down', () => {
    expect(commandLine(['--broker', 'amqp://me:secret@a,you:hidden@b/v'])).toBe(
      "node benchmark.js --broker 'amqp://***@b/v'",
    )
    expect(commandLine(['--token', 'eyJhbGciOi', '--token=eyJhbGciOi'])).toBe(
      "node benchmark.js --token '***' '--token=***'",
    )
  })

  it('writes down a command that can be typed again', () => {
    expect(commandLine(['--clients', '5', '--assert', 'p99<10ms', "it's"])).toBe(
      "node benchmark.js --clients 5 --assert 'p99<10ms' 'it'\\''s'",
    )
  })
})
