"""The loader: options, plan and engine, and what it reports.

`loader` checks the arguments into one `options.Options`. `plan` writes the layout document and
chooses a feed, and `engine` opens the library's loader. `meshfeed._feed` delivers its batches.
`position` and `account` hold the methods about states, statistics and certificates. `decoding` and
`notices` warn of loaders that are valid but slow or surprising. `certificate` and `report` have
what methods return. `placed` puts batches on the devices of a `backend`, which are not JAX's, and
`orders` has orders with parameters.
"""
