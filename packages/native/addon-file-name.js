/** File name of the addon for this machine; `undefined` where the engine does not run. It needs Linux: epoll. */
export function addonFileName() {
  const { platform, arch } = process
  if (platform !== 'linux' || !['x64', 'arm64'].includes(arch)) return undefined
  return `webmq-native.${platform}-${arch}-${isGlibc() ? 'gnu' : 'musl'}.node`
}

function isGlibc() {
  return process.report.getReport().header.glibcVersionRuntime !== undefined
}
