import type { Block } from './page-blocks.mjs'

interface Reason {
  /** Languages of the blocks that it may be given for. */
  readonly languages: readonly string[]
  /** In a block of commands it excuses only those that begin so; the others are run. */
  readonly begins?: RegExp
}

const commands = (begins: RegExp): Reason => ({ languages: ['sh'], begins })

/**
 * Why a block is not run: `<!-- not run: reason, reason -->` above it. tool-commands.test.ts holds that the packages,
 * scripts, files, projects and flags are there which the commands that are not run name.
 */
export const REASONS: Readonly<Record<string, Reason>> = {
  // The guides show what a page had before.
  'code of another product': { languages: ['js'] },
  // Trees of files, paths of messages.
  'a picture': { languages: [''] },
  // npm run test:packages installs the packages from a registry of its own; the workflow of a release verifies it.
  'needs the release': commands(
    /^(npm (install|audit signatures)|cosign verify|gh (attestation verify|release download)|sha256sum --check|npx webmq-check|pip install webmq-client|(go get |git clone https:\/\/)github\.com\/webmq)\b/,
  ),
  // npm run test:containers plays the stages of the image, and validates the manifests.
  'needs containers': commands(/^(\w+=\S+ )?docker /),
  'needs a cluster': commands(/^(kubectl|helm) /),
  // test/deploy/manifests.test.ts verifies the unit.
  'changes the machine': commands(/^(systemctl|mkcert -install|rustup|pip install cargo-zigbuild) ?/),
  // rabbitmq-lost-stream.test.ts gives RabbitMQ the same expressions.
  'needs a RabbitMQ': commands(/^rabbitmqctl eval /),
  // test/deploy/production.test.ts plays it.
  'needs an installation': commands(/^webmq-server doctor --production /),
  'needs a public name': commands(/^certbot /),
  // npm test, test:all, test:soak and CI run them; the fuzzers, the bench and other platforms take longer still.
  'takes minutes': commands(
    /^(\([^)]*|(\w+=('[^']*'|\S+) )+)?(npm (start|test|run)|npx (tsc|vitest|webmq-(bench|check|conformance))|cargo|go build|pnpm|webmq-loadgen|node (\S*benchmark\.js|(packages|scripts|test)\/\S+))\b/,
  ),
}

/** The commands of a block without comments; a command may have several lines. */
export function commandsOf({ code }: Pick<Block, 'code'>): string[] {
  return code
    .replaceAll('\\\n', '')
    .split('\n')
    .map((line) => line.replace(/(^| +)# .*$/, '').trim())
    .filter((line) => line !== '')
}

/** Whether a reason that the block gives excuses the command. */
export function isExcused(block: Block, command: string): boolean {
  return block.notRun.some((reason) => REASONS[reason]?.begins?.test(command))
}
