import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fixtureRecord } from '../../test/report-fixture.js'
import { runCli } from '../cli.js'
import { FILES } from './write-output.js'

const SMALL = { tiers: [100, 1_000], targets: ['webmq-native', 'uws'] }

describe('benchmark.js compare', () => {
  let directory: string
  const file = (name: string) => join(directory, name)

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'webmq-compare-'))
    writeFileSync(file('before.json'), FILES.json(fixtureRecord(SMALL)))
    writeFileSync(file('after.json'), FILES.json(fixtureRecord({ ...SMALL, seed: 2, speed: 0.75 })))
    writeFileSync(file('other.json'), '{"hello":"world"}')
    writeFileSync(file('broken.json'), '{')
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  async function compare(...args: string[]) {
    const texts = { stdout: '', stderr: '' }
    const code = await runCli(['compare', ...args], {
      stdout: { write: (text: string) => (texts.stdout += text) },
      stderr: { write: (text: string) => (texts.stderr += text) },
      signal: new AbortController().signal,
      env: {},
    })
    return { code, ...texts }
  }

  it('prints what differs and ends well without conditions', async () => {
    const { code, stdout } = await compare(file('before.json'), file('after.json'))
    expect(stdout).toMatch(/uws, 100 connections\s+deliveriesPerServerCpuSecond.*worse/)
    expect(code).toBe(0)
  })

  it('ends with 3 when a condition is found, and says where', async () => {
    const { code, stdout } = await compare(file('before.json'), file('after.json'), '--fail-on', 'worse')
    expect(stdout).toMatch(/FAILS on 'worse': uws, 100 connections: deliveriesPerServerCpuSecond is worse/)
    expect(code).toBe(3)
    expect((await compare(file('before.json'), file('before.json'), '--fail-on', 'worse')).code).toBe(0)
  })

  it('compares targets within one file', async () => {
    const args = [file('before.json'), '--targets', 'uws,webmq-native', '--fail-on']
    expect((await compare(...args, 'deliveriesPerServerCpuSecond<5x')).code).toBe(0)
    expect((await compare(...args, 'deliveriesPerServerCpuSecond<50x')).code).toBe(3)
  })

  it('writes the page', async () => {
    const { stdout } = await compare(file('before.json'), file('after.json'), '--html', file('page.html'))
    expect(stdout).toContain('worse')
    expect(readFileSync(file('page.html'), 'utf8')).toMatch(/^<!doctype html>/)
  })

  it.each([
    [['before.json'], /two files, or one and --targets/],
    [[], /missing required argument/],
    [['before.json', 'none.json'], /none.json could not be read/],
    [['before.json', 'broken.json'], /could not be read as JSON/],
    [['before.json', 'other.json'], /not a result of this bench/],
    [['before.json', 'after.json', '--noise', 'much'], /percentage/],
    [['before.json', '--targets', 'uws'], /two names/],
    [['before.json', 'after.json', '--fail-on', 'p98<1x'], /not 'p98'/],
  ])('refuses %j with exit code 2', async (args, message) => {
    const { code, stderr } = await compare(...args.map((arg) => (arg.endsWith('.json') ? file(arg) : arg)))
    expect(stderr).toMatch(message)
    expect(code).toBe(2)
  })
})
