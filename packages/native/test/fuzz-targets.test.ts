import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const FUZZ = fileURLToPath(new URL('../fuzz/', import.meta.url))
const readText = (file: string) => readFileSync(FUZZ + file, 'utf8')
const namesIn = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, name = '']) => name).sort()

describe('the fuzz targets', () => {
  const targets = readdirSync(`${FUZZ}fuzz_targets`).map((file) => file.replace(/\.rs$/, ''))
  const build = readText('oss-fuzz/build.sh')

  it('are those that cargo builds, the README names, and have seeds', () => {
    expect(targets.length).toBeGreaterThan(5)
    expect(namesIn(readText('Cargo.toml'), /^name = "(\w+)"\npath = "fuzz_targets/gm)).toEqual(targets)
    expect(namesIn(readText('README.md'), /^\| `(\w+)` \|/gm)).toEqual(targets)
    expect(readdirSync(`${FUZZ}seeds`).sort()).toEqual(targets)
    for (const target of targets) expect(readdirSync(`${FUZZ}seeds/${target}`), target).not.toEqual([])
  })

  it('are those that OSS-Fuzz builds, with the dictionaries that are there', () => {
    expect(namesIn(build, /^ {2}\[(\w+)\]=\d+$/gm)).toEqual(targets)
    const [, withDictionary = ''] = /^for target in ([\w ]+); do$/m.exec(build) ?? []
    const dictionaries = readdirSync(FUZZ).filter((file) => file.endsWith('.dict'))
    expect(namesIn(build, /cp (\S+\.dict) /g)).toEqual(dictionaries)
    for (const target of withDictionary.split(' ')) expect(targets).toContain(target)
  })

  it('are a project of OSS-Fuzz that its infrastructure can read', () => {
    const project = parse(readText('oss-fuzz/project.yaml'))
    expect(project).toMatchObject({ language: 'rust', fuzzing_engines: ['libfuzzer'], sanitizers: ['address'] })
    const { repository } = JSON.parse(readText('../package.json'))
    expect(repository.url).toBe(`git+${project.main_repo}.git`)
    const dockerfile = readText('oss-fuzz/Dockerfile')
    expect(dockerfile).toContain(project.main_repo)
    expect(dockerfile).toContain('WORKDIR $SRC/webmq/packages/native/fuzz')
    expect(readdirSync(`${FUZZ}oss-fuzz`).sort()).toEqual(['Dockerfile', 'build.sh', 'project.yaml'])
    execFileSync('bash', ['-n', `${FUZZ}oss-fuzz/build.sh`])
  })
})
