import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { blocksFor } from './docs/examples.js'

const ROOT = fileURLToPath(new URL('../', import.meta.url))

const readText = (file: string) => readFileSync(join(ROOT, file), 'utf8')
const run = (...args: readonly string[]) => spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })

describe('what verifies a release', () => {
  const { code } = blocksFor(import.meta.url).exampleOf('releasing.md', 'verify')
  const { env, on, jobs } = parseYaml(readText('.github/workflows/release.yml'))
  const textOf = (job: string) => JSON.stringify(jobs[job])

  it('is read by a shell, and run by the workflow after the release', () => {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: code, encoding: 'utf8' })
    expect(status, stderr).toBe(0)
    expect(textOf('verify')).toContain('node scripts/release/verify.mjs')
    expect(jobs.verify.needs).toContain('release')
    const { status: refused, stderr: why, stdout } = run('scripts/release/verify.mjs', 'latest')
    expect([refused, stdout + why]).toEqual([1, expect.stringContaining('latest is no version.')])
    // SECURITY.md names the three, and leads there.
    for (const command of ['npm audit signatures', 'cosign verify', 'gh attestation verify']) {
      expect(code).toContain(command)
      expect(readText('SECURITY.md')).toContain(`\`${command}\``)
    }
  })

  it('asks for the identity of the workflow and the branch that sign', () => {
    expect(code).toContain('\nissuer=https://token.actions.githubusercontent.com\n')
    const [, workflow = ''] = /^signer=webmq\/webmq\/(\S+)$/m.exec(code) ?? []
    expect(workflow).toBe('.github/workflows/release.yml')
    const [, branch = ''] = /^identity=https:\/\/github\.com\/\$signer@refs\/heads\/(\S+)$/m.exec(code) ?? []
    expect(on.push.branches).toEqual([branch])
    const whole = code.replaceAll('\\\n', '').split('\n')
    const asks = (begin: string) => whole.filter((line) => line.startsWith(begin))
    for (const line of asks('cosign '))
      expect(line).toContain('--certificate-identity "$identity" --certificate-oidc-issuer "$issuer"')
    for (const line of asks('gh attestation ')) expect(line).toContain('--repo webmq/webmq --signer-workflow "$signer"')
    expect([asks('cosign ').length, asks('gh attestation ').length]).toEqual([3, 4])
  })

  it('covers the image, the chart and the files, each of which is signed and attested', () => {
    const images = [env.IMAGE, `${env.CHARTS}/webmq`]
    for (const image of images) {
      expect(code).toMatch(new RegExp(`^cosign verify --.* ${image}:1\\.2\\.3$`, 'm'))
      expect(code).toContain(`gh attestation verify oci://${image}:1.2.3 `)
    }
    expect(textOf('signed').match(/cosign sign --yes/g)).toHaveLength(images.length)
    expect(textOf('signed').match(/actions\/attest@/g)).toHaveLength(images.length + 1)
    expect(textOf('signed')).toContain('files/webmq-image.cdx.json')
    for (const job of ['files', 'release']) expect(textOf(job)).toContain('SHA256SUMS')
    expect(textOf('release')).toContain(
      'cosign sign-blob --yes --bundle files/SHA256SUMS.sigstore.json files/SHA256SUMS',
    )
    // The chart and the manifests ask for the image that is published.
    expect(parseYaml(readText('deploy/helm/values.yaml')).image.repository).toBe(env.IMAGE)
    expect(parseYaml(readText('deploy/kubernetes/kustomization.yaml')).images[0].newName).toBe(env.IMAGE)
    expect(readText('scripts/release/sbom.mjs')).toContain(`'${env.IMAGE}'`)
  })

  it('comes after the approval, as all that is published does', () => {
    const needsOf = (job: string): readonly string[] => {
      const needs = [jobs[job].needs ?? []].flat() as string[]
      return [...needs, ...needs.flatMap(needsOf)]
    }
    expect(jobs.publish.environment).toBe('npm')
    for (const job of ['image', 'signed', 'release']) expect(needsOf(job), job).toContain('publish')
  })
})

/** Those of https://github.com/ossf/scorecard/blob/main/docs/checks.md, in its order. */
const SCORECARD = [
  ...['Binary-Artifacts', 'Branch-Protection', 'CI-Tests', 'CII-Best-Practices', 'Code-Review', 'Contributors'],
  ...['Dangerous-Workflow', 'Dependency-Update-Tool', 'Fuzzing', 'License', 'Maintained', 'Packaging'],
  ...['Pinned-Dependencies', 'SAST', 'SBOM', 'Security-Policy', 'Signed-Releases', 'Token-Permissions'],
  ...['Vulnerabilities', 'Webhooks'],
]

it('docs/releasing.md goes through all checks of OpenSSF Scorecard', () => {
  const [, table = ''] = readText('docs/releasing.md').split('## OpenSSF Scorecard')
  const rows = [...table.matchAll(/^\| ([A-Z][\w-]+) \| (.+?) \| (.*?)\|$/gm)]
  expect(rows.map(([, name]) => name)).toEqual(SCORECARD)
  // Where, or why not.
  for (const [, name, what = '', where = ''] of rows)
    expect(where.trim() !== '' || /^\*\*not/.test(what), name).toBe(true)
})

it('SECURITY.md says how fast each step of a report is', () => {
  const [, policy = ''] = readText('SECURITY.md').split('## Reporting a vulnerability')
  const steps = [...policy.matchAll(/^\| \*\*(\w+)\*\*.* \| .*\b\d+ (?:working )?days/gm)].map(([, name]) => name)
  expect(steps).toEqual(['Acknowledge', 'Assess', 'Fix', 'Fix', 'Disclose'])
})
