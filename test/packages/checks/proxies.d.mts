export declare const proxyChecks: readonly { readonly name: string }[]
