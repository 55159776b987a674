// `npm run version-packages`: gives all packages the version that the changesets ask for, and the changelog its heading.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { must, print, ROOT, runScript, StepError } from '../lib/steps.mjs'
import { released } from './changelog.mjs'
import { withVersion, withVersions } from './crates.mjs'

/** Of the workspace of all crates. */
const CARGO_MANIFEST = 'packages/native/Cargo.toml'

await runScript(async () => {
  const changelog = path.join(ROOT, 'CHANGELOG.md')
  const text = readFileSync(changelog, 'utf8')
  const hasChangesets = readdirSync(path.join(ROOT, '.changeset')).some((file) => /^(?!README).*\.md$/.test(file))
  if (!hasChangesets) throw new StepError('There is no changeset: nothing asks for a release. Run: npx changeset')
  const before = readVersion()
  await must('changesets failed.', path.join(ROOT, 'node_modules', '.bin', 'changeset'), ['version'], {
    log: 'version',
  })
  const version = readVersion()
  if (version === before) throw new StepError(`The version is still ${before}.`)
  const date = new Date().toISOString().slice(0, 10)
  writeFileSync(changelog, released(text, version, date))
  // The root package and the crates are published nowhere, but say the same version.
  edit('package.json', (manifest) => manifest.replace(/("version": )"[^"]+"/, `$1"${version}"`))
  edit('deploy/helm/Chart.yaml', (chart) => chart.replace(/^((?:appV|v)ersion: )"?[^"\n]+"?$/gm, `$1"${version}"`))
  edit('deploy/kubernetes/kustomization.yaml', (file) => file.replace(/(newTag: )"[^"]+"/, `$1"${version}"`))
  edit(CARGO_MANIFEST, (manifest) => withVersion(manifest, version))
  edit(CARGO_MANIFEST.replace('.toml', '.lock'), (lock) => withVersions(lock, version))
  print(`${before} -> ${version}: CHANGELOG.md, packages, crates, chart, manifests`)
})

function readVersion() {
  return JSON.parse(readFileSync(path.join(ROOT, 'packages', 'server', 'package.json'), 'utf8')).version
}

function edit(file, change) {
  const at = path.join(ROOT, file)
  writeFileSync(at, change(readFileSync(at, 'utf8')))
}
