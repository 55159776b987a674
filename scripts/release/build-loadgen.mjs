// Builds the load generator of webmq-bench for every platform that it runs on. Needs cargo-zigbuild and zig; the release
// workflow installs them with `pip install ziglang cargo-zigbuild`.
import { cpSync, mkdirSync } from 'node:fs'
import path from 'node:path'
import { must, ROOT, runScript, step } from '../lib/steps.mjs'

const FOLDER = path.join(ROOT, 'packages', 'bench', 'loadgen')
/** Linked against musl and nothing else, so the same program serves both C libraries. */
const TARGETS = { x64: 'x86_64-unknown-linux-musl', arm64: 'aarch64-unknown-linux-musl' }
/** Without debug information the program has a fifth of the size. */
const SMALL = { CARGO_PROFILE_RELEASE_DEBUG: 'false', CARGO_PROFILE_RELEASE_STRIP: 'symbols' }

await runScript(async () => {
  for (const [arch, target] of Object.entries(TARGETS)) {
    const args = ['zigbuild', '--release', '--locked', '--package', 'webmq-loadgen', '--target', target]
    await step(`Building the load generator for ${target}`, () =>
      must(
        'The load generator did not build; it needs `pip install ziglang cargo-zigbuild` and the target of rustup.',
        'cargo',
        args,
        {
          cwd: FOLDER,
          env: { ...process.env, ...SMALL },
          log: `loadgen-${arch}`,
        },
      ),
    )
    const targets = process.env.CARGO_TARGET_DIR ?? path.join(ROOT, 'target')
    const built = path.join(targets, target, 'release', 'webmq-loadgen')
    for (const libc of ['gnu', 'musl']) {
      const folder = path.join(FOLDER, 'artifacts', `linux-${arch}-${libc}`)
      mkdirSync(folder, { recursive: true })
      cpSync(built, path.join(folder, 'webmq-loadgen'))
    }
  }
})
