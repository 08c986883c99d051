import java.nio.file.Path;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.connectors.HttpConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

/** A Bolt server on 127.0.0.1: folder, port. It ends with its standard input, so it cannot outlive its parent. */
class Bolt {
    public static void main(String[] arguments) throws Exception {
        DatabaseManagementService service =
                new DatabaseManagementServiceBuilder(Path.of(arguments[0]))
                        .setConfig(GraphDatabaseSettings.auth_enabled, false)
                        .setConfig(BoltConnector.enabled, true)
                        .setConfig(BoltConnector.listen_address,
                                new SocketAddress("127.0.0.1", Integer.parseInt(arguments[1])))
                        .setConfig(HttpConnector.enabled, false)
                        .build();
        System.out.println("ready");
        while (System.in.read() >= 0) {}
        service.shutdown();
    }
}
