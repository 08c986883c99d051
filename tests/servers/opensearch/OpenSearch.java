import java.nio.file.Path;
import org.codelibs.opensearch.runner.OpenSearchRunner;

/** One OpenSearch node on 127.0.0.1: folder, port, classes of plugins. It ends with its standard input, so it cannot outlive its parent. */
class OpenSearch {
    public static void main(String[] arguments) throws Exception {
        OpenSearchRunner runner = new OpenSearchRunner();
        runner.onBuild((number, settings) -> {
            settings.put("network.host", "127.0.0.1");
            settings.put("http.port", arguments[1]);
            settings.put("transport.port", "0");
            settings.put("discovery.type", "single-node");
            settings.put("path.repo", Path.of(arguments[0]).resolveSibling("snapshots").toString());
        });
        OpenSearchRunner.Configs configs = OpenSearchRunner.newConfigs()
                .basePath(arguments[0])
                .clusterName("trivium-tests")
                .numOfNode(1)
                .disableESLogger();
        runner.build(arguments.length > 2 ? configs.pluginTypes(arguments[2]) : configs);
        System.out.println("ready");
        while (System.in.read() >= 0) {}
        runner.close();
    }
}
