import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OPTIONS } from '../../src/doors/options/table.js'
import { runInProcess } from './in-process.js'

const SHELLS = ['bash', 'zsh', 'fish'] as const
const isHere = (shell: string) => spawnSync(shell, ['--version']).error === undefined

let folder: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'webmq-completion-'))
  writeFileSync(join(folder, 'some file.json'), '{}')
  for (const shell of SHELLS) {
    const { stdout, stderr, exitCode } = await runInProcess(['completion', shell])
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    writeFileSync(join(folder, `script.${shell}`), stdout)
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

/** What a shell offers for the last word of a command line. */
const OFFERS: Readonly<Record<(typeof SHELLS)[number], (words: readonly string[]) => readonly string[]>> = {
  bash: (words) => {
    const code = `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _webmq_server; printf '%s\\n' "\${COMPREPLY[@]}"`
    return run('bash', ['--norc', '-c', code, 'bash', join(folder, 'script.bash'), ...words])
  },
  zsh: (words) => {
    const stubs = [
      'compdef() { }',
      `_describe() { print -rl -- \${\${(P)2}%%:*} }`,
      '_files() { print -rl -- * }',
      'compadd() { shift; print -rl -- "$@" }',
      '_message() { }',
    ].join('\n')
    const code = `${stubs}\nsource $1; shift; words=("$@"); CURRENT=$#; PREFIX=$words[-1]; _webmq_server`
    const last = words.at(-1) ?? ''
    return run('zsh', ['-f', '-c', code, 'zsh', join(folder, 'script.zsh'), ...words]).filter((offer) =>
      offer.startsWith(last),
    )
  },
  fish: (words) => {
    const line = words.map((word) => word.replaceAll(' ', '\\ ')).join(' ')
    const code = `source ${join(folder, 'script.fish')}; complete -C ${JSON.stringify(line)}`
    return run('fish', ['--no-config', '-c', code]).map((offer) => offer.split('\t')[0] ?? '')
  },
}

function run(shell: string, args: readonly string[]): readonly string[] {
  return execFileSync(shell, args, { encoding: 'utf8', cwd: folder })
    .split('\n')
    .filter((line) => line !== '')
}

describe.each(SHELLS)('completion in %s', (shell) => {
  const offers = (...words: readonly string[]) => OFFERS[shell](['webmq-server', ...words])
  it.runIf(isHere(shell))('offers commands, flags, choices and files', () => {
    expect(offers('')).toEqual(expect.arrayContaining(['serve', 'sub', 'token', 'config', 'completion']))
    expect(offers('t').toSorted()).toEqual(['token', 'top'])
    expect(offers('token', '').slice(0, 2).toSorted()).toEqual(['create', 'inspect'])
    expect(offers('token', 'create', '--pri')).toEqual(['--private-key'])
    expect(offers('--jwt-secret-f')).toEqual(['--jwt-secret-file'])
    expect(offers('-p', '9000', '--log-level', 'w')).toEqual(['warn'])
    expect(offers('config', 'check', '--stri')).toEqual(['--strict'])
    expect(offers('--config', 'som').join('').replaceAll('\\', '')).toBe('some file.json')
    expect(offers('--port', 'x')).toEqual([])
    expect(offers('completion', 'fi')).toEqual(['fish'])
  })

  it.runIf(isHere(shell))('offers every option of the table, to the server and to config check', () => {
    for (const words of [[], ['serve'], ['config', 'check']]) {
      const flags = offers(...words, '--')
      for (const { flag } of OPTIONS) expect(flags, `${words.join(' ')} --${flag}`).toContain(`--${flag}`)
    }
    expect(offers('sub', '--')).not.toContain('--port')
  })

  it.skipIf(isHere(shell))(`is not tried: ${shell} is not installed`, () => undefined)
})

it('completes a value behind a sign, which bash splits', () => {
  expect(OFFERS.bash(['webmq-server', '--log-level', '=', 'w'])).toEqual(['warn'])
  expect(OFFERS.bash(['webmq-server', '--log-level', '='])).toContain('debug')
})

it('names the shells it knows', async () => {
  const { exitCode, stderr } = await runInProcess(['completion', 'tcsh'])
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('Allowed choices are bash, zsh, fish')])
})
